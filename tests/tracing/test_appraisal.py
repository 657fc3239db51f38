"""From a run to its credits, through real meters on scripted ports."""

from collections import Counter
from collections.abc import Sequence

import pytest

from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.runtime.errors import ContextOverflowError
from hopscope.runtime.types import Generation, GenerationRequest, Measurement, Provenance
from hopscope.tracing.appraisal import appraise, share
from hopscope.tracing.credit import leave_one_out, shapley, trajectory
from hopscope.tracing.games.coalitions import MIXED
from hopscope.tracing.meters import grogu, seper
from hopscope.tracing.reports.records import StepUtility, TotalUtility
from hopscope.tracing.reports.report import report
from hopscope.tracing.wrappers.cached import CachedReader
from tests.fakes import (
    ENTAILS,
    NEUTRAL,
    FunctionMeter,
    ReaderByEvidence,
    ScriptedEntailment,
    ScriptedReader,
    reply,
    run_of,
    scored,
)

RULES = [trajectory.build(), leave_one_out.build(), shapley.build()]
PROVENANCE = Provenance(reader="scripted", entailment="scripted")


def by_rule(credits: list) -> dict[tuple[str, int | None], Measurement]:  # type: ignore[type-arg]
    return {(c.rule, c.step): c.measurement for c in credits}


def test_a_chain_credits_the_last_hop_in_order_and_both_by_shapley() -> None:
    """The reader answers right only when it sees both passages. It is sure of what it says, so that
    no unseen reply has room in the intervals."""
    right, wrong = [reply("g", [-1e-4])] * 10, [reply("b", [-1e-4])] * 10
    reader = ReaderByEvidence({(): wrong, ("x",): wrong, ("y",): wrong, ("x", "y"): right})
    entailment = ScriptedEntailment({("g", "g"): ENTAILS, ("b", "g"): NEUTRAL, ("g", "b"): NEUTRAL})
    run = run_of("x", "", "y", answers=["g"])
    credits = appraise(run, [seper.build(reader, entailment)], RULES, PROVENANCE)
    found = by_rule(credits)
    assert [found["level", t].value for t in (None, 0, 1, 2)] == [0, 0, 0, 1]
    assert [found["trajectory", t].value for t in range(3)] == [0, 0, 1]
    assert [found["leave_one_out", t].value for t in range(3)] == [1, 0, 1]
    assert [found["shapley", t].value for t in range(3)] == [0.5, 0, 0.5]
    total = found["total", None]
    assert total.value == 1
    assert total.low == pytest.approx(1 - (2 * 0.3085**2) ** 0.5, abs=1e-3)
    assert len(reader.generated) == 1
    assert [len(call) for call in entailment.calls] == [2, 1]
    assert {c.meter for c in credits} == {"seper"}
    shown = report(run, credits)
    last, whole = shown.steps[2].credit["seper"], shown.total.meters["seper"]
    assert isinstance(last, StepUtility)
    assert last.shapley == 0.5
    assert isinstance(whole, TotalUtility)
    assert (whole.before, whole.after) == (0, 1)


def test_the_replies_of_all_meters_come_from_one_call() -> None:
    """The entropy score needs no second look at an answer, so that the reader is asked once."""
    answer = [reply("g", [-0.1], entropies=(0.4,))] * 4
    asked = ReaderByEvidence(dict.fromkeys([(), ("x",), ("y",), ("x", "y")], answer))
    reader = CachedReader(asked)
    entailment = ScriptedEntailment({("g", "g"): ENTAILS})
    meters = [
        seper.build(reader, entailment, samples=4),
        seper.build(reader, entailment, samples=4, kind="hard"),
        grogu.build(reader, score="entropy"),
    ]
    together = share(
        run_of("x", "y", answers=["g"]), meters, RULES, PROVENANCE, ask=reader.generate
    )
    assert {c.meter for c in together.credits} == {"seper", "seper_hard", "grogu"}
    assert [len(call) for call in asked.generated] == [8]  # four contexts, sampled and greedy


class Overflowing(ReaderByEvidence):
    """Answers what fits, and then refuses a call in which two passages are shown."""

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        replies = super().generate(requests)
        if any(len(request.prompt.shown) > 1 for request in requests):
            raise ContextOverflowError(self.name, 9, 1, 8)
        return replies


def test_a_prompt_that_is_too_long_costs_the_others_one_more_call_at_most() -> None:
    answer = [reply("g", [-0.1], entropies=(0.4,))] * 4
    reader = Overflowing(dict.fromkeys([(), ("x",), ("y",), ("x", "y")], answer))
    measuring = Measuring(
        samples=4,
        seed=0,
        options={"grogu.score": "entropy"},
        meters=["seper", "seper_hard", "grogu"],
        rules=["shapley"],
    )
    appraiser = Appraiser(reader, ScriptedEntailment({("g", "g"): ENTAILS}), measuring)
    appraiser.appraise(run_of("x", "y", answers=["g"]))
    sent = Counter(request for call in reader.generated for request in call)
    assert {count for request, count in sent.items() if len(request.prompt.shown) < 2} == {2}


def test_without_retrieval_everything_is_exactly_zero() -> None:
    reader = ReaderByEvidence({(): [reply("g"), reply("b")]})
    entailment = ScriptedEntailment({("g", "g"): ENTAILS, ("b", "g"): NEUTRAL, ("g", "b"): NEUTRAL})
    found = by_rule(
        appraise(run_of("", answers=["g"]), [seper.build(reader, entailment)], RULES, PROVENANCE)
    )
    for name in [("trajectory", 0), ("shapley", 0), ("total", None)]:
        assert (found[name].value, found[name].low, found[name].high) == (0, 0, 0)
    assert found["level", 0] == found["level", None]


def test_grogu_with_keys_gets_levels_and_trajectory_and_is_flagged_where_rules_mix() -> None:
    answers = [[reply("x", [-0.1], entropies=(h,))] for h in (0.9, 0.5, 0.2)]
    reader = ScriptedReader(answers, [scored([0.9]), scored([0.9])])
    credits = appraise(run_of("1", "2"), [grogu.build(reader)], RULES, PROVENANCE)
    found = by_rule(credits)
    assert {rule for rule, _ in found} == {"level", "trajectory", "total"}
    assert found["level", None].value == 0
    assert [found["trajectory", t].value for t in (0, 1)] == pytest.approx([0.4, 0.3])
    assert [found["trajectory", t].estimator.endswith(MIXED) for t in (0, 1)] == [True, False]
    assert found["total", None].estimator.endswith(MIXED)
    assert found["total", None].low is None


def test_grogu_by_plain_entropy_is_a_game_like_any_other() -> None:
    answers = [[reply("x", [-0.1], entropies=(h,))] for h in (0.9, 0.5, 0.2, 0.4)]
    meter = grogu.build(ScriptedReader(answers), score="entropy")
    found = by_rule(appraise(run_of("1", "2"), [meter], RULES, PROVENANCE))
    assert found["shapley", 0].value is not None
    assert "mixes" not in found["trajectory", 0].estimator


def test_questions_without_golds_are_unmeasured_with_the_reason() -> None:
    meter = seper.build(ScriptedReader(), ScriptedEntailment({}))
    for credit in appraise(run_of("1", "", answers=[]), [meter], RULES, PROVENANCE):
        assert credit.measurement.value is None
        assert "gold" in str(credit.measurement.reason)


def test_each_meter_is_asked_once() -> None:
    meter = FunctionMeter(lambda keys: 0.1 * len(keys))
    appraise(run_of("1", "2", "3"), [meter], RULES, PROVENANCE)
    assert len(meter.calls) == 1
    assert len(meter.calls[0]) == 8
