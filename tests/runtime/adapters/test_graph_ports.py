"""A graph that asks the ports of its run, or a model of its own: what limits and policies hold."""

from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime

from hopscope.runtime.adapters import workflow
from hopscope.runtime.budget.ledger import Ledger, Limits
from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.prompting.prompts import short_answer
from hopscope.runtime.types import GenerationRequest, Passage
from tests.runtime.adapters.graphs import QUESTION, corrective, deps, told
from tests.servers.otlp import recorded


class Porting(TypedDict, total=False):
    question: str
    documents: list[Passage]
    answer: str


def porting(*, asynchronous: bool = False) -> StateGraph[Any, Any, Any, Any]:
    """A graph of its own state whose nodes ask the run's ports."""

    def find(state: Porting, runtime: Runtime[Deps]) -> Porting:
        [hits] = runtime.context.retriever.search(["Alba"], k=2)
        return {"documents": [hit.passage for hit in hits]}

    def read(state: Porting, runtime: Runtime[Deps]) -> Porting:
        prompt = short_answer(state["question"], state["documents"][:1])
        [[said]] = runtime.context.reader.generate([GenerationRequest(prompt=prompt)])
        return {"answer": said.text}

    async def late_read(state: Porting, runtime: Runtime[Deps]) -> Porting:
        return read(state, runtime)

    graph = StateGraph(Porting, context_schema=Deps)
    graph.add_node("find", find)
    graph.add_node("read", late_read if asynchronous else read)
    graph.add_edge(START, "find")
    graph.add_edge("find", "read")
    return graph


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_graph_that_asks_the_runs_ports_tells_exactly_what_it_asked(asynchronous: bool) -> None:
    ports = deps("Lisbon")
    graph = workflow.of_graph(porting(asynchronous=asynchronous), "test")
    with recorded() as spans:
        found = run(graph, QUESTION, ports)
    assert found.status == "ok", found.error
    assert [told(step) for step in found.steps] == [
        ("find", "retrieve", "Alba", ("alba", "bruno"), ()),
        ("read", "generate", None, (), ("alba",)),
    ]
    assert found.steps[1].exchanges[0].generations[0].text == found.answer == "Lisbon"
    assert (found.reader, found.retriever) == (ports.reader.name, ports.retriever.name)
    assert found.usage.uncounted == 0
    assert found.steps[0].dangling == ("bruno",)
    chat = spans.named(f"chat {ports.reader.name}")
    assert chat.parent is not None
    assert f"{chat.parent.span_id:016x}" == found.steps[1].span_id
    whole = spans.named("invoke_workflow graph:test")
    step = spans.named("read")
    assert step.parent is not None
    assert whole.context is not None
    assert step.parent.span_id == whole.context.span_id
    assert (step.attributes or {})["hopscope.step.kind"] == "generate"


def test_limits_hold_in_a_graph_that_asks_the_runs_ports() -> None:
    spent = run(
        workflow.of_graph(porting(), "test"),
        QUESTION,
        deps("Lisbon", ledger=Ledger(Limits(retrievals=0))),
    )
    assert spent.status == "ok", spent.error
    assert spent.steps[0].query is None
    assert spent.evidence == ()


def test_limits_and_policies_are_refused_where_they_cannot_hold() -> None:
    class Never:
        name = "never"

        def decide(self, moment: object, reader: object) -> Any:
            raise AssertionError("not asked")

    foreign = workflow.of_graph(corrective(), "test")
    with pytest.raises(
        UsageError, match=r"calls its own model, so that limits cannot hold \(calls"
    ):
        run(foreign, QUESTION, deps(ledger=Ledger(Limits(calls=3))))
    with pytest.raises(UsageError, match="decides itself when to retrieve: leave out the policy"):
        run(foreign, QUESTION, deps(policy=Never()))
    with pytest.raises(UsageError, match="cannot be resumed"):
        run(foreign, QUESTION, deps(), checkpointer=InMemorySaver())
