"""Any LangGraph graph as a workflow: what its nodes write becomes steps."""

import json
import threading
import time
from operator import add
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.documents import Document
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, Send

from hopscope.runtime.adapters import workflow
from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution.run import Watched, Workflow, run
from hopscope.runtime.types import Passage, Question, Run, Usage
from hopscope.tracing.games.frozen import contributions
from hopscope.tracing.reports.shown import shown_passages
from hopscope.workflows import naive
from tests.runtime.adapters.graphs import (
    ALBA,
    BRUNO,
    NOISE,
    QUESTION,
    Corrective,
    answered,
    corrective,
    deps,
    generate,
    retrieve,
    told,
)


def test_a_corrective_rag_with_its_own_retriever_and_model() -> None:
    found = answered(corrective().compile())
    asked, better = QUESTION.text, "Where was Bruno Costa born?"
    assert [told(step) for step in found.steps] == [
        ("retrieve", "retrieve", asked, ("alba", "mars"), ()),
        ("grade", "judge", None, (), ()),
        ("rewrite", "generate", None, (), ("alba",)),
        ("retrieve", "retrieve", better, ("bruno",), ()),
        ("grade", "judge", None, (), ()),
        ("generate", "generate", None, (), ("alba", "bruno")),
    ]
    held = [[passage.key for passage in step.evidence] for step in found.steps]
    assert held == [
        ["alba", "mars"], ["alba"], ["alba"], ["alba", "bruno", "mars"], ["alba", "bruno"],
        ["alba", "bruno"],
    ]  # fmt: skip
    assert [hit.passage.key for hit in found.steps[0].ranked] == ["alba", "mars"]
    again = [hit.passage.key for hit in found.steps[3].ranked]
    assert again == ["bruno", "mars"], "without what it was given and handed on"
    assert found.steps[0].dangling == ("mars",)
    assert found.steps[0].evidence[0] == Passage(
        id="alba", title="Alba", text=ALBA.page_content, source="graph:test"
    )
    assert json.loads(found.steps[4].output or "") == ["alba", "bruno"]
    assert list(shown_passages(found)) == ["alba", "bruno"]
    assert json.loads(found.steps[2].output or "") == {"question": better, "tries": "1"}
    assert (found.steps[5].output, found.answer, found.stop_reason) == (
        "Lisbon",
        "Lisbon",
        "answered",
    )
    assert found.workflow == "graph:test"
    assert found.options == {
        "question": "question",
        "documents": "documents",
        "query": None,
        "answer": "generation",
    }


def test_what_a_graph_asks_of_its_own_model_is_unknown_and_not_zero() -> None:
    found = answered(corrective())
    assert [step.usage.uncounted for step in found.steps] == [0, 0, 1, 0, 0, 1]
    assert found.usage == Usage(calls=2, uncounted=2)
    assert (found.reader, found.retriever) == ("", "")


def test_the_nodes_that_retrieve_can_be_named() -> None:
    """A node that shortens documents without ids brings new texts and retrieves nothing."""

    def find(state: Corrective) -> Corrective:
        return {"documents": [Document("Alba is a film. It is long.")]}

    def shorten(state: Corrective) -> Corrective:
        return {"documents": [Document("Alba is a film.")]}

    graph = StateGraph(Corrective).add_sequence([find, shorten, generate]).add_edge(START, "find")
    assert [step.kind for step in answered(graph).steps] == ["retrieve", "retrieve", "generate"]
    chosen = answered(graph, retrieves=["find"])
    assert [step.kind for step in chosen.steps] == ["retrieve", "judge", "generate"]
    assert chosen.options["retrieves"] == ["find"]
    assert chosen.steps[1].new != (), "it is new all the same, and has its share"


def test_a_retrieval_that_finds_nothing_new_is_one() -> None:
    graph = StateGraph(Corrective)

    def find(state: Corrective) -> Corrective:
        return {"documents": [ALBA], "tries": state.get("tries", 0) + 1}

    graph.add_node("find", find)
    graph.add_node("generate", generate)
    graph.add_edge(START, "find")
    graph.add_conditional_edges(
        "find", lambda state: "find" if state["tries"] < 3 else "generate", ["find", "generate"]
    )
    steps = answered(graph).steps
    assert [(step.kind, step.new) for step in steps[:3]] == [
        ("retrieve", ("alba",)),
        ("retrieve", ()),
        ("retrieve", ()),
    ]
    assert [hit.passage.key for hit in steps[2].ranked] == ["alba"]


class Parallel(TypedDict, total=False):
    input: str
    docs: Annotated[list[Any], add]
    output: str


def test_nodes_beside_each_other_are_steps_in_the_order_of_the_graph() -> None:
    """The first ends last: in the order of their ends the steps would differ from run to run."""
    last = threading.Event()

    def first(state: Parallel) -> Parallel:
        assert last.wait(60)
        time.sleep(0.1)  # until the second has ended, too
        return {"docs": [ALBA, {"id": 7, "text": "seven", "score": 0.5}]}

    def second(state: Parallel) -> Parallel:
        last.set()
        return {"docs": [BRUNO, ALBA]}

    def write(state: Parallel) -> Parallel:
        return {"output": "Lisbon"}

    graph = StateGraph(Parallel)
    for node in (first, second, write):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "first")
    graph.add_edge(START, "second")
    graph.add_edge(["first", "second"], "write")
    found = answered(graph)
    assert [told(step) for step in found.steps] == [
        ("first", "retrieve", QUESTION.text, ("alba", "7"), ()),
        ("second", "retrieve", QUESTION.text, ("bruno",), ()),
        ("write", "generate", None, (), ("alba", "7", "bruno")),
    ]
    assert [p.key for p in found.steps[0].evidence] == ["alba", "7"]
    assert [p.key for p in found.evidence] == ["alba", "7", "bruno"]


class Fan(TypedDict, total=False):
    question: str
    query: str
    passages: Annotated[list[Any], add]
    answer: str


def test_queries_of_tasks_that_are_sent_out() -> None:
    def plan(state: Fan) -> Command[Any]:
        sent = [Send("search", {"query": query}) for query in ("Alba", "Bruno Costa")]
        return Command(goto=sent)

    def search(state: Fan) -> Fan:
        return {"passages": [f"about {state['query']}"]}

    def write(state: Fan) -> Fan:
        return {"answer": "Lisbon"}

    graph = StateGraph(Fan)
    graph.add_node("plan", plan, destinations=("search",))
    graph.add_node("search", search)
    graph.add_node("write", write)
    graph.add_edge(START, "plan")
    graph.add_edge("search", "write")
    found = answered(graph)
    assert [(step.name, step.query) for step in found.steps] == [
        ("plan", None),
        ("search", "Alba"),
        ("search", "Bruno Costa"),
        ("write", None),
    ]
    assert [passage.text for passage in found.evidence] == ["about Alba", "about Bruno Costa"]
    assert found.options["query"] == "query"


def test_a_graph_whose_nodes_can_only_be_awaited() -> None:
    async def search(state: Parallel) -> Parallel:
        return {"docs": [ALBA]}

    async def write(state: Parallel) -> Parallel:
        return {"output": threading.current_thread().name}

    graph = StateGraph(Parallel).add_sequence([search, write]).add_edge(START, "search")
    found = answered(graph)
    assert [told(step) for step in found.steps] == [
        ("search", "retrieve", QUESTION.text, ("alba",), ()),
        ("write", "generate", None, (), ("alba",)),
    ]
    assert found.answer != threading.current_thread().name
    assert answered(corrective(), asynchronous=True).answer == "Lisbon"


def test_a_graph_of_steps_runs_as_it_always_has() -> None:
    own = naive.build(k=2)
    direct = run(Workflow("naive", own, {}), QUESTION, deps("Lisbon"))
    for graph in (own, own.compile(), own.compile(name="mine")):
        made = workflow.of_graph(graph, "mine")
        assert not isinstance(made.graph, Watched)
        found = run(made, QUESTION, deps("Lisbon"))
        keep = {"exclude": {"started", "seconds", "exchanges"}}
        assert [s.model_dump(**keep) for s in found.steps] == [
            s.model_dump(**keep) for s in direct.steps
        ]
        assert found.workflow == "graph:mine"


def test_keys_are_not_for_graphs_of_steps() -> None:
    with pytest.raises(UsageError, match="leave out all options but the name"):
        workflow.of_graph(naive.build(), "mine", documents="evidence")


def test_a_document_that_is_changed_keeps_the_text_that_was_found() -> None:
    def shorten(state: Corrective) -> Corrective:
        return {"documents": [Document("Alba.", id=each.id) for each in state["documents"]]}

    graph = StateGraph(Corrective).add_sequence([retrieve, shorten, generate])
    found = answered(graph.add_edge(START, "retrieve"))
    assert [step.kind for step in found.steps] == ["retrieve", "judge", "generate"]
    assert [p.text for p in found.evidence] == ["Alba.", "Alba."]
    assert [p.text for p in contributions(found)[0]] == [ALBA.page_content, NOISE.page_content]


class Several(TypedDict, total=False):
    question: str
    documents: list[str]
    context: str
    answer: str
    generation: str


def test_keys_are_looked_for_and_never_guessed() -> None:
    def write(state: Any) -> dict[str, Any]:
        return {"answer": "Lisbon", "documents": ["a"]}

    def made(schema: Any, **options: Any) -> Workflow:
        graph = StateGraph(schema).add_node("write", write).add_edge(START, "write")
        return workflow.of_graph(graph, "test", **options)

    with pytest.raises(UsageError) as several:
        made(Several)
    assert str(several.value) == (
        "graph:test has several keys that may hold the documents, 'documents', 'context': name "
        "one, documents='documents'"
    )
    with pytest.raises(UsageError, match="hold the answer, 'answer', 'generation': name one"):
        made(Several, documents="documents")
    chosen = made(Several, documents="documents", answer="answer")
    assert run(chosen, QUESTION, deps()).answer == "Lisbon"
    with pytest.raises(UsageError, match="has no 'docs' for documents=: its keys are 'question'"):
        made(Several, documents="docs", answer="answer")
    with pytest.raises(UsageError, match="has none of the usual keys of the question"):
        made(TypedDict("Other", {"topic": str, "answer": str}))
    with pytest.raises(UsageError, match="documents=KEY, or documents=None for a graph that"):
        made(TypedDict("Closed", {"question": str, "answer": str}))
    closed = made(TypedDict("Closed", {"question": str, "answer": str}), documents=None)
    assert closed.options["documents"] is None
    for wrong in ("ircot", lambda state: state):
        with pytest.raises(UsageError, match="a workflow is made of a StateGraph"):
            workflow.of_graph(wrong)


def test_further_inputs_and_a_context_of_its_own() -> None:
    class Needs(TypedDict, total=False):
        input: Question
        language: str
        output: str

    class Own(TypedDict):
        ending: str

    def write(state: Needs, runtime: Runtime[Own]) -> Needs:
        text = f"{state['input'].answers[0]} {state['language']}{runtime.context['ending']}"
        return {"output": text}

    graph = StateGraph(Needs, context_schema=Own).add_node("write", write).add_edge(START, "write")
    options: dict[str, Any] = {"inputs": {"language": "pt"}, "context": {"ending": "!"}}
    assert answered(graph, documents=None, **options).answer == "Lisbon pt!"


def test_threads_may_run_one_graph_at_once() -> None:
    made = workflow.of_graph(corrective(), "test")
    found: list[Run] = []
    threads = [
        threading.Thread(target=lambda: found.append(run(made, QUESTION, deps()))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [[step.index for step in each.steps] for each in found] == [list(range(6))] * 4
