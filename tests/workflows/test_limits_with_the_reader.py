"""Limits with the embedded reader, whose calls differ in size and are not known beforehand."""

from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopscope.api import parts
from hopscope.runtime.budget.ledger import Ledger, Limits
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Policy, Reader
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Passage,
    Question,
    Run,
    Scored,
    ScoreRequest,
)
from hopscope.tracing.learned.forest import Forest
from hopscope.tracing.learned.value_file import Bin, Head, StageModel, ValueFile
from hopscope.tracing.policies import repeat
from hopscope.tracing.policies.value import ValuePolicy
from hopscope.tracing.signals.gathering import NAMES, STAGES
from hopscope.tracing.wrappers.cached import CachedReader
from hopscope.tracing.wrappers.metered import MeteredReader
from tests.talk import ScriptedRetriever

PASSAGES = [
    Passage(id="a", title="Alba", text="Alba was directed by Ines Rocha."),
    Passage(id="b", title="Ines Rocha", text="Ines Rocha was born in Lisbon."),
]
ASKED = Question(text="Where was the director of Alba born?", answers=("Lisbon",))
LIMITS = st.builds(
    Limits,
    tokens=st.none() | st.integers(0, 1200),
    calls=st.none() | st.integers(0, 8),
    retrievals=st.none() | st.integers(0, 3),
)


@pytest.fixture(scope="module")
def embedded() -> Reader:
    return CachedReader(parts.reader(parts.TINY))


@pytest.mark.parametrize("name", ["naive", "ircot", "iter_retgen"])
@settings(
    max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors]
)
@given(limits=LIMITS)
def test_no_limit_is_exceeded_by_more_than_the_call_in_flight(
    embedded: Reader, name: str, limits: Limits
) -> None:
    """A policy that asks for drafts spends from the same limits."""
    counting = MeteredReader(embedded)
    deps = Deps(
        reader=counting,
        retriever=ScriptedRetriever(lambda _: PASSAGES),
        policy=repeat.build(),
        ledger=Ledger(limits),
    )
    built = parts.workflow(name, {"max_steps": "2"} if name == "ircot" else {})
    result = run(built, ASKED, deps)

    assert result.status == "ok", result.error
    assert result.answer is not None
    spent = counting.take()
    assert result.usage.tokens == spent.tokens
    sizes = [
        sum(g.usage.tokens for g in exchange.generations)
        for each in result.steps
        for exchange in each.exchanges
    ]
    if limits.tokens is not None:
        assert spent.tokens < limits.tokens + max(sizes, default=0) or not spent.tokens
    if limits.calls is not None:
        assert spent.calls <= limits.calls
    if limits.retrievals is not None:
        assert sum(each.query is not None for each in result.steps) <= limits.retrievals


class Sized:
    """A reader that keeps how large each call was."""

    def __init__(self, reader: Reader) -> None:
        self.name = reader.name
        self._reader = reader
        self.sizes: list[int] = []
        self.scored = 0

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        found = self._reader.generate(requests)
        self.sizes += [sum(g.usage.tokens for g in each) for each in found]
        return found

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        found = self._reader.score(requests)
        self.sizes += [each.usage.tokens for each in found]
        self.scored += len(found)
        return found


def curious() -> Policy:
    """Asks for all signals, whose scores are calls too, and always goes on."""
    stages = tuple(
        StageModel(
            stage=stage,
            gain=Forest(start=1.0),
            cost=Forest(start=0.0),
            bins=(Bin(score=0.0, gain=1.0, low=1.0, high=1.0),),
            doubt=9.0 if stage != STAGES[-1] else 0.0,
        )
        for stage in STAGES
    )
    heads = (Head(stages=stages, medians={}),)
    its = {"workflow": "ircot", "reader": "", "utility": "seper", "budget": 0.0}
    return ValuePolicy(ValueFile(**its, price=0.0, signals=NAMES, heads=heads), "curious")


def asked(reader: Reader, limits: Limits) -> tuple[Run, Sized]:
    sized = Sized(reader)
    deps = Deps(
        reader=sized,
        retriever=ScriptedRetriever(lambda _: PASSAGES),
        policy=curious(),
        ledger=Ledger(limits),
    )
    return run(parts.workflow("ircot", {"max_steps": "2"}), ASKED, deps), sized


def test_scores_that_a_policy_asks_for_are_within_the_limits(embedded: Reader) -> None:
    """At each limit of calls, and of tokens wherever a call ends, that the run can reach."""
    _, free = asked(embedded, Limits())
    assert free.scored, "or this would test nothing"
    reached = [Limits(calls=calls) for calls in range(len(free.sizes))]
    reached += [Limits(tokens=tokens) for tokens in accumulate(free.sizes[:-1])]
    for limits in reached:
        result, sized = asked(embedded, limits)
        assert (result.status, result.answer is None) == ("ok", False)
        assert result.usage.tokens == sum(sized.sizes), "what is scored counts, too"
        if limits.calls is not None:
            assert len(sized.sizes) <= limits.calls
        if limits.tokens is not None:
            assert sum(sized.sizes) < limits.tokens + max(sized.sizes)
