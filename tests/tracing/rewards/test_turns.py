"""Rewards of turns follow from the credits of steps, and telescope to the outcome."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.runtime import components
from hopscope.runtime.types import Credit, Provenance, Run, Step
from hopscope.tracing import credit
from hopscope.tracing.appraisal import appraise
from hopscope.tracing.rewards import turns
from hopscope.tracing.rewards.turns import Rule, TurnRewards
from tests.fakes import FunctionMeter, passage, run_of, step

Value = Callable[[tuple[str, ...]], float | None]


def searching(run: Run) -> Run:
    """The run, whose steps all searched."""
    steps = [s.model_copy(update={"query": f"query {s.index}"}) for s in run.steps]
    return run.model_copy(update={"steps": tuple(steps), "answer": "gold"})


def credits(run: Run, value: Value, *rules: str, **settings: str) -> list[Credit]:
    built = [components.load(credit, rule).build() for rule in rules or Rule]
    provenance = Provenance(reader="r", settings=dict(settings))
    return appraise(run, [FunctionMeter(value)], built, provenance)


def rewards(run: Run, value: Value, rule: Rule) -> TurnRewards:
    found = turns.of_credits(run, credits(run, value), meter="function", rule=rule)
    assert found is not None
    return found


def chain(keys: tuple[str, ...]) -> float:
    """The answer needs both a and b; closed book it is believed by .1."""
    return 0.9 if {"a", "b"} <= set(keys) else 0.1


CHAIN = searching(run_of(["a"], ["c"], ["b"]))


def test_the_last_hop_of_a_chain_gets_all_by_trajectory() -> None:
    found = rewards(CHAIN, chain, Rule.trajectory)
    assert found.levels == [0.1, 0.1, 0.1, 0.9]
    assert found.differences == pytest.approx([0, 0, 0.8])
    assert found.reward == pytest.approx(0.8)
    assert [turn.query for turn in found.turns] == ["query 0", "query 1", "query 2"]


def test_both_hops_share_alike_by_shapley() -> None:
    found = rewards(CHAIN, chain, Rule.shapley)
    assert found.differences == pytest.approx([0.4, 0, 0.4])
    assert found.levels == pytest.approx([0.1, 0.5, 0.5, 0.9])


def test_leave_one_out_has_no_levels_but_a_rest() -> None:
    """Its shares sum to twice the outcome here: levels made of them would be a lie."""
    found = rewards(CHAIN, chain, Rule.leave_one_out)
    assert found.differences == pytest.approx([0.8, 0, 0.8])
    assert found.levels == [0.1, None, None, None]
    assert found.rest == pytest.approx(-0.8)
    assert found.turns[0].level.reason == (
        "shares by leave_one_out do not sum to the outcome, so there are no levels"
    )
    assert found.reason is None


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from("abcdef"), max_size=2, unique=True), max_size=6),
    st.lists(st.floats(0, 1), min_size=64, max_size=64),
    st.sampled_from([Rule.trajectory, Rule.shapley]),
)
def test_differences_and_levels_telescope(
    brought: list[list[str]], table: list[float], rule: Rule
) -> None:
    seen: set[str] = set()
    fresh = [[k for k in keys if k not in seen and not seen.add(k)] for keys in brought]  # type: ignore[func-returns-value]
    run = searching(run_of(*fresh))
    found = rewards(run, lambda keys: table[sum(1 << "abcdef".index(k) for k in keys)], rule)
    levels = [level for level in found.levels if level is not None]
    assert len(levels) == len(fresh) + 1
    assert found.reward is not None
    assert found.rest == pytest.approx(0, abs=1e-9)
    assert levels[-1] - levels[0] == pytest.approx(found.reward, abs=1e-9)
    steps = [after - before for before, after in pairwise(levels)]
    assert steps == pytest.approx(found.differences, abs=1e-9)


def test_a_search_repeated_gets_exactly_nothing() -> None:
    """It brings nothing new, whatever it says."""
    found = rewards(searching(run_of(["a", "b"], [], [])), chain, Rule.trajectory)
    assert found.differences[1:] == [0.0, 0.0]


def test_a_turn_holds_all_steps_up_to_the_next_search() -> None:
    """Passages that a later step brought would be lost, and the sum with them."""
    evidence = tuple(map(passage, "xab"))
    steps: Sequence[Step] = (
        step(0, ["x"], kind="generate", evidence=evidence[:1]),
        step(1, ["a"], query="first", evidence=evidence[:2]),
        step(2, ["b"], kind="rank", evidence=evidence),
        step(3, (), query="second", evidence=evidence),
        step(4, (), kind="generate", evidence=evidence),
    )
    run = CHAIN.model_copy(update={"steps": tuple(steps)})
    found = rewards(run, lambda keys: len(keys) / 4, Rule.shapley)
    assert [turn.step for turn in found.turns] == [1, 3]
    assert found.differences == [0.75, 0.0]
    assert found.levels == [0.0, 0.75, 0.75]
    assert rewards(run, lambda keys: len(keys) / 4, Rule.trajectory).levels == [0.0, 0.75, 0.75]


def test_what_is_unmeasured_is_none_with_the_reason() -> None:
    def value(keys: tuple[str, ...]) -> float | None:
        return None if keys == ("a", "c") else chain(keys)

    found = rewards(CHAIN, value, Rule.trajectory)
    assert found.levels == [0.1, 0.1, None, 0.9]
    assert found.differences == [0.0, None, None]
    assert found.reward == pytest.approx(0.8)
    assert found.rest is None
    assert found.reason == "no value"
    nothing = turns.unmeasured(CHAIN, "no gold", meter="seper", rule=Rule.shapley)
    assert (nothing.levels, nothing.differences) == ([None] * 4, [None] * 3)
    assert (nothing.reward, nothing.reason) == (None, "no gold")


def test_a_run_without_a_search_has_the_outcome_alone() -> None:
    run = CHAIN.model_copy(update={"steps": ()})
    found = rewards(run, chain, Rule.trajectory)
    assert (found.levels, found.differences, found.reward) == ([0.1], [], 0.0)


def test_the_latest_plain_measurement_with_the_rule_counts() -> None:
    """Rewards of random counterfactuals would start at the belief in random passages."""
    old = credits(CHAIN, chain, seed="old")
    new = credits(CHAIN, lambda keys: len(keys) / 4, seed="new")
    random = credits(CHAIN, chain, counterfactual="random")
    replayed = credits(CHAIN, chain, mode="replay")
    other = credits(CHAIN, chain, "solo", seed="solo")
    stored = [*old, *new, *random, *replayed, *other]
    found = turns.of_credits(CHAIN, stored, meter="function", rule=Rule.trajectory)
    assert found is not None
    assert found.provenance is not None
    assert found.provenance.settings == {"seed": "new"}
    assert found.levels == [0, 0.25, 0.5, 0.75]
    assert turns.of_credits(CHAIN, stored, meter="seper", rule=Rule.trajectory) is None
    assert turns.of_credits(CHAIN, other, meter="function", rule=Rule.shapley) is None
