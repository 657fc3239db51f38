"""How runs of a graph end early: Ctrl-C, a node that fails, a graph that cannot go on."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator, Mapping
from queue import SimpleQueue
from typing import Any, Literal

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from hopscope.runtime.adapters import workflow
from hopscope.runtime.execution.run import run
from tests.runtime.adapters.graphs import (
    QUESTION,
    Corrective,
    deps,
    retrieve,
)
from tests.servers.otlp import recorded


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C interrupts also where a shell started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_ctrl_c_ends_a_run_and_keeps_its_steps(asynchronous: bool, ctrl_c: None) -> None:
    stopped: list[str] = []

    def wait(state: Corrective) -> Corrective:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("not reached")

    async def late_wait(state: Corrective) -> Corrective:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append("cancelled")
        return {}

    graph = StateGraph(Corrective).add_node(retrieve)
    graph.add_node("wait", late_wait if asynchronous else wait)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "wait")
    begun = time.perf_counter()
    found = run(workflow.of_graph(graph, "test"), QUESTION, deps())
    assert found.status == "interrupted"
    assert [step.name for step in found.steps] == ["retrieve"]
    assert time.perf_counter() - begun < 30
    if asynchronous:
        while not stopped and time.perf_counter() - begun < 30:
            time.sleep(0.01)
        assert stopped == ["cancelled"]


def test_ctrl_c_loses_no_step_that_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """It came between the queue and the run."""

    class Losing(SimpleQueue[Any]):
        def get(self, *_: Any, **__: Any) -> Any:
            found = super().get()
            if found is not None and found["steps"]:
                raise KeyboardInterrupt
            return found

    monkeypatch.setattr(workflow, "SimpleQueue", Losing)
    graph = StateGraph(Corrective).add_node(retrieve).add_edge(START, "retrieve")
    found = run(workflow.of_graph(graph, "test", asynchronous=True), QUESTION, deps())
    assert found.status == "interrupted"
    assert [step.name for step in found.steps] == ["retrieve"]


def test_a_node_that_fails_leaves_the_steps_before_it() -> None:
    def fail(state: Corrective) -> Corrective:
        raise ConnectionError("the model is away")

    graph = StateGraph(Corrective).add_sequence([retrieve, fail]).add_edge(START, "retrieve")
    for asynchronous in (False, True):
        made = workflow.of_graph(graph, "test", asynchronous=asynchronous)
        with recorded() as spans:
            found = run(made, QUESTION, deps())
        assert found.status == "failed"
        assert found.error is not None
        told = "node 'fail': the model is away"
        assert (found.error.type, found.error.message) == ("ConnectionError", told)
        assert [step.name for step in found.steps] == ["retrieve"]
        why = spans.named("fail").status.description or ""
        assert why.startswith("ConnectionError: the model is away")


def failure(graph: Any, **options: Any) -> str:
    found = run(workflow.of_graph(graph, "test", **options), QUESTION, deps())
    assert found.error is not None
    return found.error.message


def test_what_a_run_cannot_go_on_with_is_told() -> None:
    def text(state: Corrective) -> Mapping[str, Any]:
        return {"documents": "Alba is a film."}

    def ask(state: Corrective) -> Corrective:
        return {"generation": interrupt("really?")}

    def silent(state: Corrective) -> Corrective:
        return {"tries": 1}

    def forever(state: Corrective) -> Command[Literal["forever"]]:
        return Command(goto="forever")

    def one(node: Any) -> Any:
        return StateGraph(Corrective).add_node("node", node).add_edge(START, "node")

    assert failure(one(text)) == (
        "graph:test, node 'node': 'documents' cannot be read as documents: an object of type "
        "str is no list of passages: give texts, dicts with 'text' (and 'title', 'id', 'score'), "
        "Passage, Hit or Document objects, or pairs (passage, score)"
    )
    assert "waits for a person at its node 'node'" in failure(
        one(ask).compile(checkpointer=InMemorySaver())
    )
    assert failure(one(silent)).startswith("graph:test ended without an answer in 'generation'")
    endless = StateGraph(Corrective).add_node("forever", forever).add_edge(START, "forever")
    assert failure(endless.compile().with_config(recursion_limit=5)).startswith(
        "Recursion limit of 5 reached"
    )
