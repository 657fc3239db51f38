"""A limit of seconds, on a clock that only models and retrievers move."""

from collections.abc import Sequence
from itertools import cycle

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopscope.runtime.budget import ledger
from hopscope.runtime.budget.ledger import Ledger, Limits
from hopscope.runtime.execution import step
from hopscope.runtime.execution.run import Run, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Generation, GenerationRequest, Hit
from hopscope.tracing.entailments import lexical
from tests.probes import Speaker
from tests.talk import ScriptedRetriever
from tests.workflows.test_conformance import NAMES, PASSAGES, PROBES, QUESTION, Probe, build


class Clock:
    """Stands still between calls; each takes the next of some durations."""

    def __init__(self, durations: Sequence[float]) -> None:
        self.now = 0.0
        self.longest = 0.0
        self._durations = cycle(durations)

    def __call__(self) -> float:
        return self.now

    def call(self) -> None:
        took = next(self._durations)
        self.now += took
        self.longest = max(self.longest, took)


class SlowReader(Speaker):
    clock: Clock

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        assert len(requests) == 1, "under limits, batches are asked one by one"
        self.clock.call()
        return super().generate(requests)


class SlowRetriever(ScriptedRetriever):
    clock: Clock

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        self.clock.call()
        return super().search(queries, k=k)


def spend(name: str, seconds: float, clock: Clock) -> Run:
    probe = PROBES.get(name, Probe())
    reader = SlowReader(probe.say(), unsure=probe.unsure)
    retriever = SlowRetriever(lambda query: PASSAGES)
    reader.clock = retriever.clock = clock
    limits = Limits(seconds=seconds)
    deps = Deps(
        reader=reader, retriever=retriever, entailment=lexical.build(), ledger=Ledger(limits)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "perf_counter", clock)
        patch.setattr(step, "perf_counter", clock)
        patch.setattr(
            "hopscope.runtime.execution.run.Ledger",
            lambda limits, price: Ledger(limits, price, _begun=clock.now),
        )
        return run(build(name), QUESTION, deps)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seconds=st.floats(0.5, 60), durations=st.lists(st.floats(0.1, 20), min_size=1, max_size=6))
def test_time_is_exceeded_by_the_call_in_flight_at_most(
    name: str, seconds: float, durations: list[float]
) -> None:
    clock = Clock(durations)
    result = spend(name, seconds, clock)
    assert result.status == "ok", result.error
    assert result.answer is not None
    assert clock.now < seconds + clock.longest


def test_the_answer_is_asked_for_while_there_is_time_to_ask() -> None:
    """Three seconds a call, ten in all: with nine spent, there is none for another thought."""
    clock = Clock([3.0])
    result = spend("ircot", 10, clock)
    assert [s.name for s in result.steps] == ["retrieve", "reason", "retrieve", "conclude"]
    assert result.stop_reason == "budget_seconds"
    assert clock.now == 12, "the answer is the call in flight"
