"""A corrective RAG as a graph of LangGraph, and how a run of a graph is told."""

from typing import Any, TypedDict

from langchain_core.documents import Document
from langgraph.graph import END, START, StateGraph

from hopscope.runtime.adapters import workflow
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Passage, Question, Run, Step
from tests.talk import ScriptedRetriever, Talker

QUESTION = Question(text="Where was the director of Alba born?", answers=("Lisbon",))
ALBA = Document("Alba is a film by Bruno Costa.", id="alba", metadata={"title": "Alba"})
BRUNO = Document("Bruno Costa was born in Lisbon.", id="bruno", metadata={"title": "Bruno Costa"})
NOISE = Document("Mars is a planet.", id="mars", metadata={"title": "Mars"})


class Corrective(TypedDict, total=False):
    """The state of a corrective RAG as LangGraph's tutorials have it."""

    question: str
    documents: list[Document]
    generation: str
    tries: int


def retrieve(state: Corrective) -> Corrective:
    found = [BRUNO, NOISE] if "Bruno" in state["question"] else [ALBA, NOISE]
    return {"documents": [*state.get("documents", []), *found], "question": state["question"]}


def grade(state: Corrective) -> Corrective:
    kept = [document for document in state["documents"] if document.id != "mars"]
    return {"documents": kept, "question": state["question"]}


def rewrite(state: Corrective) -> Corrective:
    return {"question": "Where was Bruno Costa born?", "tries": state.get("tries", 0) + 1}


def generate(state: Corrective) -> Corrective:
    return {
        "documents": state["documents"],
        "question": state["question"],
        "generation": "Lisbon" if len(state["documents"]) > 1 else "unknown",
    }


def corrective() -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Corrective)
    for node in (retrieve, grade, rewrite, generate):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "grade")
    graph.add_conditional_edges(
        "grade",
        lambda state: "generate" if state.get("tries") else "rewrite",
        ["generate", "rewrite"],
    )
    graph.add_edge("rewrite", "retrieve")
    graph.add_edge("generate", END)
    return graph


def deps(*replies: str, **options: Any) -> Deps:
    passages = [Passage(id=d.id or "", title=d.metadata["title"], text=d.page_content)
                for d in (ALBA, BRUNO)]  # fmt: skip
    return Deps(Talker(replies), ScriptedRetriever(lambda _: passages), seed=3, **options)


def answered(graph: Any, **options: Any) -> Run:
    """A run of a graph that asks nothing of the ports."""
    found = run(workflow.of_graph(graph, "test", **options), QUESTION, deps())
    assert found.status == "ok", found.error
    return found


def told(step: Step) -> tuple[Any, ...]:
    return step.name, step.kind, step.query, step.new, step.shown
