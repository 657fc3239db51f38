"""Decisions are kept with their steps: in the run, on the span and in the database."""

from pathlib import Path

import pytest

from hopscope.runtime.budget.ledger import Ledger, Limits
from hopscope.runtime.execution.run import Run, Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Passage, Question
from hopscope.store.store import Store
from hopscope.tracing.policies import margin
from hopscope.workflows import ircot
from tests.probes import Speaker
from tests.servers.otlp import recorded
from tests.talk import ScriptedRetriever

FOUND = [Passage(id="p", title="Alba", text="Alba is a film.")]


def decided(*, capture: bool = True) -> Run:
    deps = Deps(
        reader=Speaker(lambda request: "A film is old. More of it follows."),
        retriever=ScriptedRetriever(lambda query: FOUND),
        policy=margin.build(threshold=0.99),
        ledger=Ledger(Limits(retrievals=1)),
        capture_content=capture,
    )
    return run(Workflow("ircot", ircot.build(), {}), Question(text="Who made Alba?"), deps)


def test_the_database_gives_them_back(tmp_path: Path) -> None:
    result = decided()
    with Store.open(tmp_path / "runs.db") as store:
        store.save(result)
        assert store.load(result.id) == result
    first, refused = [s.decision for s in result.steps if s.decision]
    assert (first.policy, first.retrieve, first.usage.calls) == ("margin:0.99", True, 1)
    assert (refused.policy, refused.retrieve) == ("limit:budget_retrievals", False)


@pytest.mark.parametrize("capture", [True, False])
def test_they_are_events_on_the_spans_of_their_steps(capture: bool) -> None:
    with recorded() as into:
        result = decided(capture=capture)
    events = [
        (span.name, dict(event.attributes or {}))
        for span in into.spans
        for event in span.events
        if event.name == "hopscope.decision"
    ]
    assert [name for name, _ in events] == ["retrieve", "retrieve"]
    _, first = events[0]
    assert first["hopscope.decision.retrieve"] is True
    assert first["hopscope.decision.policy"] == "margin:0.99"
    assert first["hopscope.decision.signal.margin"] == pytest.approx(0.9)
    assert first["hopscope.usage.calls"] == 1
    assert result.stop_reason == "budget_retrievals"
