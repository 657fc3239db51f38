"""Credit over coalitions of steps: vectors 25 to 27, and what every rule must satisfy."""

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.runtime import components
from hopscope.runtime.types import Run
from hopscope.tracing import credit
from hopscope.tracing.credit import _kernel, leave_one_out, shapley, solo, trajectory
from hopscope.tracing.games.coalitions import EMPTY, Coalitions, EvidenceValues
from hopscope.tracing.games.frozen import contributions, over_passages, over_steps
from hopscope.tracing.games.rule import CreditRule
from tests.fakes import FunctionMeter, passage, run_of, step

VECTOR_25 = {"": 0.2, "1": 0.3, "2": 0.25, "3": 0.2, "12": 0.6, "13": 0.35, "23": 0.5, "123": 0.9}
NOTEBOOK = {"": 0.5311137, "1": 0.6686031, "2": 0.8733926, "12": 0.9920211}
AND = {"": 0, "1": 0, "2": 0, "12": 1}
OR = {"": 0, "1": 1, "2": 1, "12": 1}


def play(run: Run, meter: FunctionMeter) -> Coalitions:
    return Coalitions(over_steps(run), EvidenceValues(run.question, meter))


def game(values: dict[str, float], steps: int) -> Coalitions:
    """Step t, from 1, brings the one passage named after it."""
    run = run_of(*(str(t) for t in range(1, steps + 1)))
    return play(run, FunctionMeter(lambda keys: values["".join(keys)]))


def credits(rule: CreditRule, coalitions: Coalitions) -> list[float | None]:
    return [measurement.value for measurement in rule.share(coalitions)]


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (trajectory, [0.1, 0.3, 0.3]),
        (leave_one_out, [0.4, 0.55, 0.3]),
        (solo, [0.1, 0.05, 0.0]),
        (shapley, [0.25, 0.30, 0.15]),
    ],
)
def test_vector_25(module: object, expected: list[float]) -> None:
    rule = module.build()  # type: ignore[attr-defined]
    assert credits(rule, game(VECTOR_25, 3)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (trajectory, [0.1, 0.3, 0.3]),
        (leave_one_out, [0.4, 0.55, 0.3]),
        (solo, [0.1, 0.05, 0.0]),
        (shapley, [0.25, 0.30, 0.15]),
    ],
)
def test_vector_25_over_the_passages_of_one_step(module: object, expected: list[float]) -> None:
    run = run_of("x", "123")
    inside = over_passages(run, 1)
    assert inside is not None
    meter = FunctionMeter(lambda keys: VECTOR_25["".join(keys[1:])])
    coalitions = Coalitions(inside, EvidenceValues(run.question, meter))
    assert credits(module.build(), coalitions) == pytest.approx(expected)  # type: ignore[attr-defined]


def test_vector_25_over_two_orders_only() -> None:
    coalitions = game(VECTOR_25, 3)
    shares = shapley.of_orders([(0, 1, 2), (1, 0, 2)])
    found = [coalitions.combine(shares[t], "two orders").value for t in range(3)]
    assert found == pytest.approx([0.225, 0.175, 0.300])


def test_vector_26_official_notebook() -> None:
    coalitions = game(NOTEBOOK, 2)
    assert credits(shapley.build(), coalitions) == pytest.approx([0.1280590, 0.3328484])
    total = coalitions.value(coalitions.full).value - coalitions.value(EMPTY).value  # type: ignore[operator]
    assert total == pytest.approx(0.4609074)
    assert sum(credits(solo.build(), coalitions)) == pytest.approx(0.4797683)  # type: ignore[arg-type]


@pytest.mark.parametrize(("values", "without"), [(AND, 1), (OR, 0)])
def test_vector_27_steps_that_need_or_replace_each_other_share_alike(
    values: dict[str, float], without: float
) -> None:
    assert credits(shapley.build(), game(values, 2)) == [0.5, 0.5]
    assert credits(leave_one_out.build(), game(values, 2)) == [without, without]


def test_players_are_the_steps_whose_passages_a_model_was_shown() -> None:
    a, b, c = passage("a"), passage("b"), passage("c")
    run = run_of()
    run = run.model_copy(
        update={
            "steps": (
                step(0, ["a"], evidence=(a,), shown=()),
                step(1, [], evidence=(a,), shown=("a",)),
                step(2, ["b"], evidence=(a, b), shown=()),
                step(3, ["c"], evidence=(c,), shown=("c",)),
            )
        }
    )
    assert contributions(run) == {0: (a,), 3: (c,)}
    coalitions = play(run, FunctionMeter(lambda keys: len(keys) / 4))
    assert coalitions.players == (0, 3)
    assert coalitions.game.evidence(coalitions.full) == (a, c)
    for name in components.names(credit):
        rule = components.load(credit, name).build()
        assert credits(rule, coalitions) == [0.25, 0, 0, 0.25]


def test_all_values_come_from_one_call_and_equal_evidence_is_measured_once() -> None:
    meter = FunctionMeter(lambda keys: 0.1 * len(keys))
    coalitions = play(run_of("1", "2", "3"), meter)
    shapley.build().share(coalitions)
    trajectory.build().share(coalitions)
    assert [len(call) for call in meter.calls] == [8]


def test_evidence_stands_in_the_order_of_the_trajectory_in_every_coalition() -> None:
    meter = FunctionMeter(lambda keys: 0.0)
    shapley.build().share(play(run_of("3", "1", "2"), meter))
    order = ["3", "1", "2"]
    assert all(sorted(keys, key=order.index) == list(keys) for call in meter.calls for keys in call)


def test_one_unmeasured_value_leaves_its_credits_unmeasured() -> None:
    meter = FunctionMeter(lambda keys: None if keys == ("1", "2") else 0.5)
    coalitions = play(run_of("1", "2", "3"), meter)
    found = trajectory.build().share(coalitions)
    assert [m.value for m in found] == [0, None, None]
    assert found[1].reason == "no value"
    assert [m.value for m in shapley.build().share(coalitions)] == [None] * 3


def test_without_a_baseline_nothing_is_measured_not_even_zero() -> None:
    meter = FunctionMeter(lambda keys: 0.5 if keys else None)
    assert credits(trajectory.build(), play(run_of("1", ""), meter)) == [None, None]


class Estimators(FunctionMeter):
    """Marks values of two passages or more as approximate."""

    def measure(self, question, evidences):  # type: ignore[no-untyped-def]
        found = super().measure(question, evidences)
        return [
            m.model_copy(update={"estimator": "approx"}) if len(e) > 1 else m
            for m, e in zip(found, evidences, strict=True)
        ]


def test_values_of_different_estimators_are_not_subtracted() -> None:
    found = trajectory.build().share(play(run_of("1", "2", "3"), Estimators(lambda k: 0.5)))
    assert [m.value for m in found] == [0, None, 0]
    assert "estimators" in str(found[1].reason)


class Bounded(FunctionMeter):
    """EvidenceValues with intervals of ±.1."""

    def measure(self, question, evidences):  # type: ignore[no-untyped-def]
        return [
            m.model_copy(update={"low": m.value - 0.1, "high": m.value + 0.1, "n": 10, "seed": 3})
            for m in super().measure(question, evidences)
        ]


def test_credits_carry_intervals_and_zeros_are_exact() -> None:
    coalitions = play(run_of("1", "", "2"), Bounded(lambda keys: 0.2 * len(keys)))
    first, none, second = trajectory.build().share(coalitions)
    assert (first.value, first.n, first.seed) == (pytest.approx(0.2), 10, 3)
    assert (first.low, first.high) == pytest.approx((0.2 - 0.02**0.5, 0.2 + 0.02**0.5))
    assert (none.value, none.low, none.high, none.n) == (0, 0, 0, 0)
    assert second.estimator == "trajectory of function"


VALUES = st.floats(0, 1)


def random_game(draw: Callable[..., float], steps: int) -> Coalitions:
    names = [str(t) for t in range(1, steps + 1)]
    sets = [c for size in range(steps + 1) for c in combinations(names, size)]
    values = {c: draw(VALUES) for c in sets}
    return play(run_of(*names), FunctionMeter(values.__getitem__))


@given(st.data(), st.integers(1, 5))
def test_trajectory_and_shapley_sum_to_the_total(data: st.DataObject, steps: int) -> None:
    coalitions = random_game(data.draw, steps)
    total = coalitions.combine({coalitions.full: Fraction(1), EMPTY: Fraction(-1)}, "total").value
    for rule in (trajectory.build(), shapley.build()):
        shared = [value for value in credits(rule, coalitions) if value is not None]
        assert len(shared) == steps
        assert sum(shared) == pytest.approx(total, abs=1e-12)


@given(st.lists(VALUES, min_size=4, max_size=4), st.integers(0, 3))
def test_shapley_is_symmetric_and_gives_nothing_to_a_null_player(
    values: list[float], null: int
) -> None:
    """The value depends on how many of the three others are there."""
    names = ["1", "2", "3", "4"]
    meter = FunctionMeter(lambda keys: values[len(set(keys) - {names[null]})])
    shared = credits(shapley.build(), play(run_of(*names), meter))
    assert shared.pop(null) == pytest.approx(0, abs=1e-15)
    assert shared == pytest.approx([(values[3] - values[0]) / 3] * 3, abs=1e-12)


def big_game() -> tuple[Coalitions, list[float]]:
    """Ten steps, additive but for a bonus when the first two are both there."""
    worth = [0.01 * t for t in range(1, 11)]

    def value(keys: tuple[str, ...]) -> float:
        return sum(worth[int(k)] for k in keys) + 0.2 * ({"0", "1"} <= set(keys))

    expected = [w + (0.1 if t < 2 else 0) for t, w in enumerate(worth)]
    return play(run_of(*(str(t) for t in range(10))), Bounded(value)), expected


def test_above_eight_steps_antithetic_permutations_come_close_and_still_sum_exactly() -> None:
    coalitions, expected = big_game()
    found = shapley.build().share(coalitions)
    shared = [m.value for m in found]
    assert shared == pytest.approx(expected, abs=1e-9)  # a pair has both orders of two steps
    assert sum(v for v in shared if v is not None) == pytest.approx(0.75, abs=1e-12)
    assert "permutations=64, antithetic, seed=0" in found[0].estimator
    assert found == shapley.build().share(big_game()[0])


def test_above_eight_steps_who_changes_nothing_still_gets_exactly_nothing() -> None:
    meter = FunctionMeter(lambda keys: len(set(keys) - {"3"}) ** 0.5)
    found = shapley.build(permutations=4).share(play(run_of(*map(str, range(9))), meter))
    assert found[3].value == 0
    assert all(m.value for m in found if m is not found[3])


def test_the_error_of_sampling_orders_widens_the_interval() -> None:
    def value(keys: tuple[str, ...]) -> float:
        return float({"0", "1", "2"} <= set(keys))

    run = run_of(*(str(t) for t in range(9)))
    few = shapley.build(permutations=8).share(play(run, Bounded(value)))
    sure = shapley.build(permutations=8).share(play(run, FunctionMeter(value)))
    assert "+- 0." in few[0].estimator
    spread = [m.high - m.low for m in sure if m.high is not None and m.low is not None]
    assert len(spread) == 9
    assert spread[0] > 0
    assert few[0].high - few[0].low > spread[0]
    assert few[0].value is not None
    assert few[0].low is not None
    assert few[0].low < few[0].value
    assert sum(m.value or 0 for m in few) == pytest.approx(1, abs=1e-12)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_kernel_shares_sum_to_the_total_and_come_as_close_as_their_error_says(seed: int) -> None:
    """Of nine steps, in a game of any values. Six standard errors of a normal distribution are
    exceeded twice in a billion."""
    draw = random.Random(seed)
    values = [draw.random() for _ in range(512)]
    names = [str(t) for t in range(9)]
    worth = FunctionMeter(lambda keys: values[sum(1 << int(key) for key in keys)])
    coalitions = play(run_of(*names), worth)
    found = shapley.build(permutations=32, sampling="kernel").share(coalitions)
    total = values[511] - values[0]
    assert sum(m.value for m in found if m.value is not None) == pytest.approx(total, abs=1e-12)
    shares = shapley.exact(range(9))
    for player, measured in enumerate(found):
        truth = coalitions.combine(shares[player], "exact").value
        assert measured.value is not None
        assert measured.high is not None
        assert truth is not None
        assert abs(measured.value - truth) <= 3 * (measured.high - measured.value) + 1e-9


@given(st.lists(st.floats(-1, 1), min_size=9, max_size=9), st.integers(0, 99))
@settings(max_examples=10, deadline=None)
def test_kernel_shares_of_an_additive_game_are_exact(worth: list[float], seed: int) -> None:
    """Without error, and so without a width; among them are null players and equal ones."""
    names = [str(t) for t in range(9)]
    rule = shapley.build(permutations=4, seed=seed, sampling="kernel")
    meter = FunctionMeter(lambda keys: sum(worth[int(key)] for key in keys))
    found = rule.share(play(run_of(*names), meter))
    assert [m.value for m in found] == pytest.approx(worth, abs=1e-12)
    assert all(m.high - m.low < 1e-9 for m in found if m.high is not None and m.low is not None)


def test_kernel_sampling_is_named_and_repeats_itself() -> None:
    coalitions, expected = big_game()
    rule = shapley.build(sampling="kernel")
    found = rule.share(coalitions)
    assert "shapley(kernel, coalitions=576, paired, seed=0)" in found[0].estimator
    assert "+- 0." in found[0].estimator
    assert found == rule.share(big_game()[0])
    assert found != shapley.build(sampling="kernel", seed=1).share(big_game()[0])
    assert [m.value for m in found] == pytest.approx(expected, abs=0.02)
    few = play(run_of("1", "2"), FunctionMeter(lambda keys: len(keys) / 2))
    assert rule.share(few) == shapley.build().share(few)


def test_too_few_kernel_coalitions_are_filled_up_until_all_shares_are_determined() -> None:
    drawn = _kernel.regression(range(9), 2, seed=0)
    assert len(drawn.pairs) >= 9
    assert sum(drawn.parts) == 1
    assert all(sum(moves) == 0 for moves in drawn.moves.values())


def test_one_unmeasured_value_leaves_all_kernel_shares_unmeasured() -> None:
    meter = FunctionMeter(lambda keys: None if keys == ("0",) else 0.5)
    rule = shapley.build(sampling="kernel")
    assert credits(rule, play(run_of(*map(str, range(9))), meter)) == [None] * 9


def test_every_rule_is_listed_and_documented() -> None:
    assert components.names(credit) == ["leave_one_out", "shapley", "solo", "trajectory"]
    assert all(components.load(credit, name).__doc__ for name in components.names(credit))


def test_a_run_without_steps_shares_nothing() -> None:
    empty: Run = run_of()
    assert shapley.build().share(play(empty, FunctionMeter(lambda keys: 0.5))) == []
