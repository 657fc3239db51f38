"""Any LangGraph graph as a workflow: what its nodes write becomes steps."""

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from operator import add
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import Runtime
from langgraph.types import Command, Send, interrupt

from hopscope.runtime.adapters import workflow
from hopscope.runtime.budget.ledger import Ledger, Limits
from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution.run import Watched, Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.prompting.prompts import short_answer
from hopscope.runtime.types import GenerationRequest, Passage, Question, Run, Step, Usage
from hopscope.tracing.games.frozen import contributions
from hopscope.tracing.reports.shown import shown_passages
from hopscope.workflows import naive
from tests.servers.otlp import recorded
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


def test_nodes_beside_each_other_are_steps_one_after_the_other() -> None:
    def first(state: Parallel) -> Parallel:
        return {"docs": [ALBA, {"id": 7, "text": "seven", "score": 0.5}]}

    def second(state: Parallel) -> Parallel:
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


def call(name: str, number: int, **arguments: Any) -> AIMessage:
    asked = ToolCall(name=name, args=arguments, id=f"call-{number}")
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    return AIMessage("", tool_calls=[asked], usage_metadata=usage)  # type: ignore[arg-type]


@tool(response_format="content_and_artifact")
def documents(query: str) -> tuple[str, list[Document]]:
    """Search for documents."""
    found = [BRUNO] if "Bruno" in query else [ALBA]
    return "\n\n".join(each.page_content for each in found), found


@tool
def listed(query: str, language: str) -> list[dict[str, Any]]:
    """Search for records."""
    return [{"id": "r1", "title": "Record", "text": f"{query} in {language}"}]


@tool
def plain(topic: str) -> str:
    """Search for text."""
    return f"All about {topic}."


@tool
def broken(topic: str) -> str:
    """Fail."""
    raise ValueError("no such topic")


def agent(*replies: AIMessage) -> Any:
    """An agent that calls tools until it answers."""
    model = FakeMessagesListChatModel(responses=list(replies))
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([documents, listed, plain, broken], handle_tool_errors=True))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile(name="agent")


def test_an_agent_that_calls_tools() -> None:
    replies = (
        call("documents", 1, query="Alba"),
        call("documents", 2, query="Bruno Costa"),
        AIMessage("Lisbon"),
    )
    found = answered(agent(*replies))
    assert [told(step) for step in found.steps] == [
        ("agent", "generate", None, (), ()),
        ("tools", "retrieve", "Alba", ("alba",), ()),
        ("agent", "generate", None, (), ("alba",)),
        ("tools", "retrieve", "Bruno Costa", ("bruno",), ()),
        ("agent", "generate", None, (), ("alba", "bruno")),
    ]
    assert json.loads(found.steps[0].output or "") == [
        {"name": "documents", "args": {"query": "Alba"}}
    ]
    assert found.answer == found.steps[-1].output == "Lisbon"
    assert found.usage == Usage(input_tokens=20, output_tokens=10, calls=3, uncounted=1)
    assert found.options["documents"] == "messages"


def test_what_tools_say_is_passages() -> None:
    several = AIMessage(
        "",
        tool_calls=[
            ToolCall(name="listed", args={"query": "Alba", "language": "en"}, id="a"),
            ToolCall(name="plain", args={"topic": "Bruno"}, id="b"),
            ToolCall(name="broken", args={"topic": "x"}, id="c"),
        ],
    )
    found = answered(agent(several, AIMessage("Lisbon")))
    step = found.steps[1]
    assert step.query == "Alba | Bruno"
    assert [(p.key, p.title, p.text) for p in step.evidence] == [
        ("r1", "Record", "Alba in en"),
        (step.new[1], "", "All about Bruno."),
    ]
    chosen = answered(agent(several, AIMessage("Lisbon")), retrieves=["plain"])
    assert chosen.steps[1].query == "Bruno"
    assert [p.text for p in chosen.evidence] == ["All about Bruno."]
    failed = answered(agent(call("broken", 1, topic="x"), AIMessage("unknown")))
    assert [step.kind for step in failed.steps] == ["generate"] * 3
    assert "no such topic" in (failed.steps[1].output or "")


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


def test_a_document_that_is_changed_keeps_the_text_that_was_found() -> None:
    def shorten(state: Corrective) -> Corrective:
        return {"documents": [Document("Alba.", id=each.id) for each in state["documents"]]}

    graph = StateGraph(Corrective).add_sequence([retrieve, shorten, generate])
    found = answered(graph.add_edge(START, "retrieve"))
    assert [step.kind for step in found.steps] == ["retrieve", "judge", "generate"]
    assert [p.text for p in found.evidence] == ["Alba.", "Alba."]
    assert [p.text for p in contributions(found)[0]] == [ALBA.page_content, NOISE.page_content]


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
