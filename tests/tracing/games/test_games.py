"""Counterfactuals and games over passages: who plays, what stands in for the absent, and the
identities that hold in every game."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Hit, Passage, Provenance, Run
from hopscope.tracing.appraisal import appraise
from hopscope.tracing.credit import leave_one_out, shapley, solo, trajectory
from hopscope.tracing.games.coalitions import (
    EMPTY,
    Coalitions,
    EvidenceValues,
    Game,
    GameMember,
    MissingEvidence,
)
from hopscope.tracing.games.frozen import Counterfactual, over_passages, over_steps, random_passages
from tests.fakes import FunctionMeter, passage, run_of

LEAVE_OUT = Counterfactual("leave-out")
RULES = [trajectory.build(), leave_one_out.build(), solo.build(), shapley.build()]
KEYS = "abcdefghijkl"

few = settings(deadline=None, max_examples=40)


def keys(game: Game, *players: int) -> str:
    evidence = game.evidence(frozenset(players))
    assert not isinstance(evidence, MissingEvidence)
    return "".join(p.key for p in evidence)


def play(game: Game, run: Run, meter: FunctionMeter) -> Coalitions:
    return Coalitions(game, EvidenceValues(run.question, meter))


def values(rule: object, coalitions: Coalitions) -> list[float]:
    found = [m.value for m in rule.share(coalitions)]  # type: ignore[attr-defined]
    assert None not in found
    return found


def found_twice() -> Run:
    """Step 0 brings a and b, step 1 finds b again and brings c, step 2 finds a, not shown again."""
    run = run_of("ab", "c", "d")
    ranked = ["ab", "bc", "a"]
    shown = ["ab", "bc", "d"]
    steps = [
        s.model_copy(
            update={
                "ranked": tuple(Hit(passage=passage(k), score=1) for k in ranked[s.index]),
                "shown": tuple(shown[s.index]),
            }
        )
        for s in run.steps
    ]
    return run.model_copy(update={"steps": tuple(steps)})


def test_with_empty_a_passage_goes_with_the_step_that_brought_it_first() -> None:
    game = over_steps(found_twice())
    assert game.players == (0, 1, 2)
    assert [keys(game, *s) for s in ((), (1,), (0, 2), (0, 1, 2))] == ["", "c", "abd", "abcd"]


def test_with_leave_out_what_another_step_found_too_is_still_there() -> None:
    """In its own place, so that a reader who minds the order reads no other order."""
    game = over_steps(found_twice(), LEAVE_OUT)
    assert [keys(game, *s) for s in ((), (1,), (2,), (1, 2))] == ["", "bc", "d", "bcd"]
    assert "leave-out" in game.remark


def test_a_step_that_only_found_again_plays_with_leave_out() -> None:
    run = run_of("a", "")
    again = run.steps[1].model_copy(
        update={"ranked": (Hit(passage=passage("a"), score=1),), "shown": ("a",)}
    )
    run = run.model_copy(update={"steps": (run.steps[0], again)})
    assert over_steps(run).players == (0,)
    game = over_steps(run, LEAVE_OUT)
    assert game.players == (0, 1)
    meter = FunctionMeter(lambda keys: float(len(keys)))
    assert values(shapley.build(), play(game, run, meter)) == [0.5, 0.5]
    assert values(leave_one_out.build(), play(game, run, meter)) == [0, 0]


def test_over_passages_the_other_steps_stay() -> None:
    game = over_passages(run_of("ab", "cd", "e"), 1)
    assert game is not None
    assert (game.step, game.members, game.players) == (1, (0, 1), (0, 1))
    assert [game.identify(member) for member in game.members] == [
        GameMember(1, "c"),
        GameMember(1, "d"),
    ]
    assert [keys(game, *s) for s in ((), (0,), (1,), (0, 1))] == ["abe", "abce", "abde", "abcde"]


def test_a_passage_that_another_step_found_too_changes_nothing_when_left_out() -> None:
    game = over_passages(found_twice(), 0, LEAVE_OUT)
    assert game is not None
    assert (game.members, game.players) == ((0, 1), (0,))
    assert keys(game) == "bcd"
    meter = FunctionMeter(lambda keys: 0.1 * len(keys))
    assert values(shapley.build(), play(game, found_twice(), meter))[1] == 0


def test_a_step_that_brought_nothing_has_no_game() -> None:
    assert over_passages(run_of("a", ""), 1) is None
    assert over_passages(run_of("a"), 7) is None


def corpus(count: int) -> list[Passage]:
    return [Passage(id=f"r{i}", text="word " * (i + 1)) for i in range(count)]


def test_stand_ins_are_as_many_about_as_long_and_none_that_the_run_found() -> None:
    run = run_of("ab", "c")  # texts of three words
    others = [*corpus(30), *(passage(k) for k in "abc")]
    counterfactual = random_passages(run, others, seed=3)
    assert sorted(counterfactual.stand_ins) == ["a", "b", "c"]
    drawn = list(counterfactual.stand_ins.values())
    assert len({p.key for p in drawn}) == 3
    assert sorted(len(p.text.split()) for p in drawn) == [2, 3, 4]
    game = over_steps(run, counterfactual)
    assert len(game.evidence(EMPTY)) == 3
    partial = game.evidence(frozenset({1}))
    assert partial == (*drawn[:2], passage("c"))
    assert game.remark == ", counterfactual=random(seed=3)"


def test_the_draw_depends_on_the_seed_only() -> None:
    run, others = run_of("ab", "c"), [Passage(id=str(i), text=f"one two {i}") for i in range(500)]
    again = [random_passages(run, others, seed=seed).stand_ins for seed in (1, 1, 2)]
    assert again[0] == again[1] != again[2]


def test_a_corpus_without_other_passages_is_refused() -> None:
    with pytest.raises(UsageError, match="too few that the run did not retrieve"):
        random_passages(run_of("ab"), [passage("a"), passage("b")], seed=0)


def test_against_random_passages_the_total_is_what_they_do_not_do() -> None:
    run = run_of("a", "b")
    others = [Passage(id=str(i), text=f"one two {i}") for i in range(9)]
    worth = {"a": 0.5, "b": 0.25}
    meter = FunctionMeter(lambda keys: sum(worth.get(key, 0.0625) for key in keys))
    game = over_steps(run, random_passages(run, others, seed=0))
    coalitions = play(game, run, meter)
    assert coalitions.value(EMPTY).value == 0.125
    assert values(shapley.build(), coalitions) == [0.4375, 0.1875]
    estimator = shapley.build().share(coalitions)[0].estimator
    assert estimator == "shapley of function, counterfactual=random(seed=0)"


COUNTERFACTUALS = st.sampled_from(["empty", "leave-out", "random"])


@st.composite
def games(draw: st.DrawFn) -> tuple[Run, list[Game]]:
    """A run whose steps bring some passages and find some again, and all its games."""
    count = draw(st.integers(1, 4))
    sizes = [draw(st.integers(0, 3)) for _ in range(count)]
    news = [KEYS[sum(sizes[:t]) : sum(sizes[: t + 1])] for t in range(count)]
    run = run_of(*news)
    steps = []
    for s in run.steps:
        again = [p for p in s.evidence if draw(st.booleans())]
        hits = tuple(Hit(passage=p, score=1) for p in again)
        steps.append(
            s.model_copy(update={"ranked": hits, "shown": tuple(p.key for p in s.evidence)})
        )
    run = run.model_copy(update={"steps": tuple(steps)})
    kind = draw(COUNTERFACTUALS)
    others = [Passage(id=f"r{i}", text=f"one two {i}") for i in range(40)]
    against = random_passages(run, others, seed=1) if kind == "random" else Counterfactual(kind)
    inside = [over_passages(run, t, against) for t in range(count)]
    return run, [over_steps(run, against), *(game for game in inside if game)]


def scripted(draw: st.DrawFn) -> FunctionMeter:
    """A meter that says any value of any evidence, always the same of the same."""
    told: dict[tuple[str, ...], float] = {}

    def value(found: tuple[str, ...]) -> float:
        if found not in told:
            told[found] = draw(st.floats(0, 1))
        return told[found]

    return FunctionMeter(value)


@few
@given(st.data())
def test_in_every_game_trajectory_and_shapley_sum_to_the_total(data: st.DataObject) -> None:
    run, played = data.draw(games())
    meter = scripted(data.draw)  # type: ignore[arg-type]
    for game in played:
        coalitions = play(game, run, meter)
        whole = {coalitions.full: Fraction(1), EMPTY: Fraction(-1)} if game.players else {}
        total = coalitions.combine(whole, "total").value
        for rule in (trajectory.build(), shapley.build()):
            shared = values(rule, coalitions)
            assert len(shared) == len(game.members)
            assert sum(shared) == pytest.approx(total, abs=1e-14)
            absent = set(game.members) - set(game.players)
            assert all(shared[member] == 0 for member in absent)


@few
@given(st.data(), st.integers(2, 6))
def test_equals_share_exactly_alike_and_who_changes_nothing_gets_exactly_nothing(
    data: st.DataObject, count: int
) -> None:
    """Of a step's passages the last changes nothing; of the others only the number counts."""
    told = [data.draw(st.floats(-5, 5)) for _ in range(count)]
    null = KEYS[count - 1]
    run = run_of("z", KEYS[:count])
    game = over_passages(run, 1)
    assert game is not None
    meter = FunctionMeter(lambda keys: told[len(set(keys) - {null, "z"})])
    shared = values(shapley.build(), play(game, run, meter))
    assert shared[-1] == 0
    assert len(set(shared[:-1])) == 1


@few
@given(st.data())
def test_shapley_of_a_sum_of_games_is_the_sum_of_their_shapleys(data: st.DataObject) -> None:
    run, [game, *_] = data.draw(games())
    one, other = scripted(data.draw), scripted(data.draw)  # type: ignore[arg-type]
    both = FunctionMeter(lambda keys: one._value(keys) + other._value(keys))  # type: ignore[operator]
    shared = [values(shapley.build(), play(game, run, meter)) for meter in (one, other, both)]
    for first, second, together in zip(*shared, strict=True):
        assert together == pytest.approx(first + second, abs=1e-12)


@few
@given(st.integers(9, 12), st.integers(0, 3), st.integers(4, 9))
def test_sampled_orders_keep_the_identities_over_steps_and_passages(
    count: int, seed: int, orders: int
) -> None:
    """A value that depends on who is there in no simple way; nobody's share is drawn by luck."""
    names = KEYS[:count]

    def value(found: tuple[str, ...]) -> float:
        return (sum(1.7 ** names.index(key) for key in found if key != names[0]) % 1) / 2

    rule = shapley.build(permutations=orders, seed=seed)
    run = run_of(*names)
    inside = over_passages(run_of(names), 0)
    assert inside is not None
    for game in (over_steps(run), inside):
        coalitions = play(game, run, FunctionMeter(value))
        shared = rule.share(coalitions)
        total = value(tuple(names)) - value(())
        assert sum(m.value or 0 for m in shared) == pytest.approx(total, abs=1e-13)
        assert shared[0].value == 0
        assert all(m.low is not None and m.high is not None for m in shared)
        assert all(m.low <= m.value <= m.high for m in shared)  # type: ignore[operator]
        even = orders + orders % 2
        assert f"permutations={even}, antithetic, seed={seed}" in shared[0].estimator


def test_the_interval_of_sampled_orders_covers_the_exact_share() -> None:
    """Nine players of whom three are needed together: 40 draws of 16 orders. The 95 % intervals may
    miss in 2 of 40 cases on average; the chance of 8 misses is under 1 in 1,000."""
    run = run_of(*"abcdefghi")
    meter = FunctionMeter(lambda keys: float({"a", "b", "c"} <= set(keys)))
    missed = 0
    for seed in range(40):
        coalitions = play(over_steps(run), run, meter)
        first = shapley.build(permutations=16, seed=seed).share(coalitions)[0]
        assert first.low is not None
        assert first.high is not None
        missed += not first.low <= 1 / 3 <= first.high
    assert missed < 8


def test_too_few_orders_are_refused() -> None:
    with pytest.raises(UsageError, match="give 4 or more"):
        shapley.build(permutations=2)


def test_an_appraisal_over_passages_names_them_and_says_what_they_share() -> None:
    run = run_of("ab", "", "c")
    worth = {"a": 0.25, "b": 0.125, "c": 0.5}
    meter = FunctionMeter(lambda keys: sum(worth[key] for key in keys))
    inside = [over_passages(run, t) for t in range(3)]
    chosen = [game for game in inside if game]
    credits = appraise(run, [meter], RULES, Provenance(reader="r"), games=chosen)
    found = {(c.step, c.passage, c.rule): c.measurement.value for c in credits}
    assert [found[0, k, "shapley"] for k in "ab"] == [0.25, 0.125]
    assert found[0, None, "leave_one_out"] == 0.375
    assert found[2, "c", "shapley"] == found[2, None, "leave_one_out"] == 0.5
    assert {key[0] for key in found} == {0, 2}
    assert len(meter.calls) == 1
    assert len(set(meter.calls[0])) == len(meter.calls[0])


def test_the_credit_of_a_step_left_out_is_the_same_in_both_games() -> None:
    run = run_of("ab", "c")
    meter = FunctionMeter(lambda keys: 0.1 * len(keys) ** 2)
    over = appraise(run, [meter], [leave_one_out.build()], Provenance(reader="r"))
    game = over_passages(run, 0)
    assert game is not None
    inside = appraise(run, [meter], [], Provenance(reader="r"), games=[game])
    [of_step] = [c.measurement for c in over if (c.step, c.rule) == (0, "leave_one_out")]
    assert [c.measurement for c in inside] == [of_step]


def test_levels_are_told_where_a_rule_needed_them() -> None:
    run = run_of("a", "b", "c")
    meter = FunctionMeter(lambda keys: 0.1 * len(keys))
    credits = appraise(run, [meter], [leave_one_out.build()], Provenance(reader="r"))
    assert [c.step for c in credits if c.rule == "level"] == [None, 1, 2]
    assert len(meter.calls[0]) == 5
