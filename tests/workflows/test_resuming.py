"""A run that is broken off after any of its steps goes on as if nothing had happened."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from hopscope.runtime.execution.checkpoints import serializer
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Run
from hopscope.tracing.entailments import lexical
from tests.probes import Speaker
from tests.talk import ScriptedRetriever
from tests.workflows.test_conformance import CASES, PASSAGES, PROBES, QUESTION, Probe, ask, build

SHORT = {"flare": {"max_tokens": 20}}
"""Options that spare a workflow of very many steps most of them."""
TIMES = {"started", "seconds", "span_id"}


class PowerCut(Exception):
    pass


class Failing(SqliteSaver):
    """Writes one checkpoint, and the power is gone; if `patient`, not that before all steps."""

    patient = False

    def put(self, config: Any, checkpoint: Any, metadata: Any, versions: Any) -> Any:
        put = super().put(config, checkpoint, metadata, versions)
        if self.patient and metadata["source"] == "input":
            return put
        raise PowerCut


def facts(run: Run) -> list[dict[str, Any]]:
    """Everything in the steps but times and the ids of spans."""
    without = {"exchanges": {"__all__": TIMES}} | dict.fromkeys(TIMES, True)
    return [step.model_dump(exclude=without) for step in run.steps]


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as opened:
        yield opened


@pytest.mark.parametrize(("name", "options"), CASES)
def test_it_can_be_broken_off_after_every_step(
    name: str,
    options: dict[str, Any],
    connection: sqlite3.Connection,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each part builds the graph anew and has the state from the database alone."""
    options = {**SHORT.get(name, {}), **options}
    whole, _ = ask(name, options=options)
    probe = PROBES.get(name, Probe())
    reader = Speaker(probe.say(), unsure=probe.unsure)
    for parts in range(1, 100):
        deps = Deps(
            reader=reader,
            retriever=ScriptedRetriever(lambda query: PASSAGES),
            entailment=lexical.build(),
        )
        saver = Failing(connection, serde=serializer())
        saver.patient = parts > 1
        part = run(build(name, **options), QUESTION, deps, checkpointer=saver, run_id="a")
        if part.status == "ok":
            break
        assert part.error
        assert part.error.type == "PowerCut", part.error
    assert part.status == "ok"
    assert parts > len(whole.steps)
    assert facts(part) == facts(whole)
    assert (part.answer, part.stop_reason) == (whole.answer, whole.stop_reason)
    assert reader.spent == part.usage, "no call was made twice"
    assert not caplog.records, "LangGraph warns of types that it does not know"


class Losing(SqliteSaver):
    """The power is gone when a node has ended and before the state after it is kept."""

    left = 0
    """States that are kept before."""

    def put(self, config: Any, checkpoint: Any, metadata: Any, versions: Any) -> Any:
        if not self.left:
            raise PowerCut
        self.left -= 1
        return super().put(config, checkpoint, metadata, versions)


@pytest.mark.parametrize("kept", [2, 3, 4, 5])
def test_a_node_that_ended_before_its_state_was_kept_is_not_the_end(kept: int) -> None:
    whole, _ = ask("iter_retgen", options={})
    probe = PROBES.get("iter_retgen", Probe())
    reader = Speaker(probe.say(), unsure=probe.unsure)
    deps = Deps(reader=reader, retriever=ScriptedRetriever(lambda query: PASSAGES))
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        saver = Losing(connection, serde=serializer())
        saver.left = kept
        first = run(build("iter_retgen"), QUESTION, deps, checkpointer=saver, run_id="a")
        assert first.error
        saver.left = 100
        second = run(build("iter_retgen"), QUESTION, deps, checkpointer=saver, run_id="a")
    assert second.status == "ok"
    assert facts(second) == facts(whole)
    assert second.answer == whole.answer
