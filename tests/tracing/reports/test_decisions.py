"""What became of decisions, by credits worked by hand."""

import pytest

from hopscope.runtime.types import Credit, Decision, Measurement, Provenance, Run, Usage
from hopscope.tracing.reports.decisions import NO_BELIEF, NOT_RUN, explain
from tests.fakes import run_of, step


def decided(retrieve: bool, price: float | None = None) -> Decision:
    return Decision(policy="value", retrieve=retrieve, reason="so", price=price)


def level(at: int | None, value: float) -> Credit:
    return Credit(
        run_id="run",
        step=at,
        rule="level",
        meter="seper",
        measurement=Measurement(value=value),
        provenance=Provenance(reader="r"),
    )


def judged(*decisions: Decision) -> Run:
    """Each decision with a step of 100 tokens."""
    steps = [
        step(i, [f"p{i}"], decision=each, usage=Usage(input_tokens=100))
        for i, each in enumerate(decisions)
    ]
    return run_of().model_copy(update={"steps": tuple(steps)})


LEVELS = [level(None, 0.1), level(0, 0.1), level(1, 0.9)]


def test_the_gain_is_that_of_all_that_came_after() -> None:
    first, second = explain(judged(decided(True, 0.001), decided(True, 0.001)), LEVELS)
    assert (first.gain, first.tokens) == (pytest.approx(0.8), 200)
    assert (second.gain, second.tokens) == (pytest.approx(0.8), 100)
    assert (first.regret, second.regret) == (0.0, 0.0)


def test_going_on_for_more_than_it_brought_is_regretted() -> None:
    first, _ = explain(judged(decided(True, 0.005), decided(True)), LEVELS)
    assert first.regret == pytest.approx(0.005 * 200 - 0.8)


def test_what_was_not_tried_or_measured_is_not_known() -> None:
    first, second = explain(judged(decided(True), decided(False)), [])
    assert (first.gain, first.reason, first.regret) == (None, NO_BELIEF, None)
    assert (second.gain, second.reason, second.regret) == (None, NOT_RUN, None)


def test_steps_without_a_decision_are_passed_over() -> None:
    assert explain(run_of(["a"], ["b"]), LEVELS) == []
