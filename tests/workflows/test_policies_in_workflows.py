"""A policy is asked before each retrieval of every workflow, and an answer comes of any choice."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from hopscope.runtime.execution.run import Run, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Moment, Reader
from hopscope.runtime.types import Decision
from hopscope.tracing.entailments import lexical
from hopscope.tracing.policies import fixed, native, never, repeat
from tests.probes import Speaker
from tests.talk import ScriptedRetriever
from tests.workflows.test_conformance import CASES, NAMES, PASSAGES, PROBES, QUESTION, Probe, build

RETRIEVING = [name for name in NAMES if name != "closed_book"]
SEARCHING = ["ircot", "iter_retgen", "flare", "flare_instruct", "react", "search_agent", "self_ask"]


@dataclass
class Watched:
    """A policy that keeps what it was asked."""

    choices: list[bool]
    """Then the last one for ever."""
    moments: list[Moment] = field(default_factory=list)
    name: str = "watched"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        choice = self.choices[min(len(self.moments), len(self.choices) - 1)]
        self.moments.append(moment)
        return Decision(policy=self.name, retrieve=choice, reason="as told", signals={"x": 1.0})


def ask(name: str, policy: Any, **options: Any) -> tuple[Run, Speaker, ScriptedRetriever]:
    probe = PROBES.get(name, Probe())
    reader = Speaker(probe.say(), unsure=probe.unsure)
    retriever = ScriptedRetriever(lambda query: PASSAGES)
    deps = Deps(reader=reader, retriever=retriever, entailment=lexical.build(), policy=policy)
    return run(build(name, **options), QUESTION, deps), reader, retriever


@pytest.mark.parametrize(("name", "options"), CASES)
def test_without_any_retrieval_there_is_an_answer(name: str, options: dict[str, Any]) -> None:
    result, reader, retriever = ask(name, never.build(), **options)
    assert result.status == "ok", result.error
    assert result.answer
    assert retriever.queries == []
    assert result.evidence == ()
    assert result.usage == reader.spent


@pytest.mark.parametrize("name", RETRIEVING)
def test_a_policy_that_always_agrees_changes_nothing(name: str) -> None:
    free, _, queries = ask(name, None)
    agreed, _, also = ask(name, native.build())
    assert queries.queries == also.queries
    assert (free.answer, free.stop_reason) == (agreed.answer, agreed.stop_reason)
    assert [s.name for s in free.steps] == [s.name for s in agreed.steps]
    decided = [s.decision for s in agreed.steps if s.kind == "retrieve"]
    assert all(d and d.retrieve for d in decided)
    assert not any(s.decision for s in free.steps)


@pytest.mark.parametrize("name", RETRIEVING)
def test_it_is_asked_before_each_retrieval_with_what_is_known_then(name: str) -> None:
    policy = Watched([True])
    result, _, _ = ask(name, policy)
    searched = [step for step in result.steps if step.kind == "retrieve"]
    assert len(policy.moments) == len(searched)
    for moment, step in zip(policy.moments, searched, strict=True):
        assert moment.steps == result.steps[: step.index] or moment.steps == tuple(
            s.model_copy(update={"dangling": ()}) for s in result.steps[: step.index]
        )
        assert moment.question == QUESTION
    assert policy.moments[0].retrievals == 0


@pytest.mark.parametrize("name", SEARCHING)
@pytest.mark.parametrize("k", [1, 2])
def test_a_fixed_number_is_kept(name: str, k: int) -> None:
    result, _, retriever = ask(name, fixed.build(k=k))
    assert result.status == "ok", result.error
    assert len(retriever.queries) == k
    assert result.answer


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("ircot", "read"),
        ("iter_retgen", "retrieve"),
        ("react", "act"),
        ("search_agent", "think"),
        ("self_ask", "ask"),
    ],
)
def test_a_refusal_ends_the_loop_and_is_the_reason(name: str, last: str) -> None:
    result, _, _ = ask(name, Watched([True, False]))
    assert result.steps[-1].name == last
    assert result.stop_reason == "policy"
    [refused] = [s for s in result.steps if s.decision and not s.decision.retrieve]
    assert (refused.query, refused.ranked, refused.new) == (None, (), ())
    assert refused.evidence == result.steps[refused.index - 1].evidence
    assert refused.decision
    assert refused.decision.retrieval == 1


def test_what_is_refused_once_can_be_allowed_later() -> None:
    """FLARE writes on, and is unsure of another sentence."""
    result, _, retriever = ask("flare", Watched([True, False, True]))
    assert result.status == "ok", result.error
    assert len(retriever.queries) > 1


def test_what_deciding_costs_is_the_run_s() -> None:
    """IRCoT's own drafts are no short answers, so the policy pays for its own."""
    result, reader, _ = ask("ircot", repeat.build())
    decided = [s.decision.usage for s in result.steps if s.decision]
    assert sum(usage.calls for usage in decided) > 0
    assert result.usage == reader.spent
    plain, _, _ = ask("ircot", fixed.build(k=sum(s.query is not None for s in result.steps)))
    assert result.usage.calls == plain.usage.calls + sum(usage.calls for usage in decided)


def test_a_policy_s_draft_is_not_what_the_step_says() -> None:
    result, _, _ = ask("ircot", repeat.build())
    for step in result.steps:
        if step.decision and step.decision.retrieve:
            assert step.output is None


def test_the_draft_of_iter_retgen_is_its_own_answer_and_free() -> None:
    """Its short answers are what the policy would draft; only the closed-book one is not."""
    result, reader, _ = ask("iter_retgen", repeat.build())
    shown = [r.prompt.shown for r in reader.requests]
    assert len([keys for keys in shown if not keys]) == 1
    assert result.usage == reader.spent
