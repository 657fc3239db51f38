"""`hopscope.HopscopeHandler`: real chains, graphs and agents of LangChain with a scripted model."""

import asyncio
import operator
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import BaseTool, create_retriever_tool, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import hopscope
from tests.api.recording.shelf import (
    GOLD,
    PASSAGES,
    QUESTION,
    Shelf,
    answers,
    calls,
    look_up,
    model,
)


@pytest.fixture(scope="module")
def store() -> Iterator[hopscope.Store]:
    with hopscope.Store.open("sqlite://") as opened:
        yield opened


@pytest.fixture
def handler(store: hopscope.Store) -> hopscope.HopscopeHandler:
    return hopscope.HopscopeHandler(store)


def only(handler: hopscope.HopscopeHandler, store: hopscope.Store) -> hopscope.Run:
    """The only run that was stored."""
    assert handler.problems == []
    [id] = handler.stored
    return store.load(id)


def queries(run: hopscope.Run) -> list[str | None]:
    return [step.query for step in run.retrievals]


def agent(said: list[AIMessage], *tools: BaseTool) -> Any:
    """The loop of model and tools, as `create_agent` builds it."""
    speaks = model(*said)

    def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [speaks.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", think)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


@tool(response_format="content_and_artifact")
def search(query: str) -> tuple[str, list[Document]]:
    """Search the shelf."""
    found = Shelf().invoke(query)
    return "\n".join(each.page_content for each in found), found


@tool
def numbered(query: str) -> str:
    """Search the shelf."""
    return "\n".join(f"[{n}] {each['text']}" for n, each in enumerate(look_up(query), start=1))


def ask(runnable: Any, handler: hopscope.HopscopeHandler) -> Any:
    asked = {"messages": [{"role": "user", "content": QUESTION}]}
    return runnable.invoke(asked, config={"callbacks": [handler]})


def chain() -> Any:
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    read = prompt | model(answers()) | StrOutputParser()
    return {"context": Shelf(), "question": RunnablePassthrough()} | read


def check_chain(run: hopscope.Run) -> None:
    assert run.question.text == QUESTION
    assert run.answer == GOLD
    assert queries(run) == [QUESTION]
    assert [hit.passage.title for hit in run.steps[0].ranked] == ["Elsa Wilby"]
    assert run.usage.calls == 1
    assert run.steps[-1].shown == ("Elsa Wilby",)


def test_a_chain_is_a_run(handler: hopscope.HopscopeHandler, store: hopscope.Store) -> None:
    chain().invoke(QUESTION, config={"callbacks": [handler]})
    run = only(handler, store)
    check_chain(run)
    assert run.workflow == "recorded:langchain"
    assert (run.usage.input_tokens, run.usage.output_tokens) == (50, 3)


def test_a_chain_that_streams_is_the_same(
    handler: hopscope.HopscopeHandler, store: hopscope.Store
) -> None:
    """A stream tells its input and output only at its end."""
    assert "".join(chain().stream(QUESTION, config={"callbacks": [handler]})) == GOLD
    check_chain(only(handler, store))


def test_a_chain_that_is_awaited_is_the_same(
    handler: hopscope.HopscopeHandler, store: hopscope.Store
) -> None:
    asyncio.run(chain().ainvoke(QUESTION, config={"callbacks": [handler]}))
    check_chain(only(handler, store))


@pytest.mark.parametrize("called", [search, numbered], ids=lambda each: each.name)
def test_a_search_of_a_tool_counts_once(
    called: BaseTool, handler: hopscope.HopscopeHandler, store: hopscope.Store
) -> None:
    """By its artifact, where a retriever is within it, too; else by its text."""
    said = [calls("Elsa Wilby", name=called.name), calls(*PASSAGES, name=called.name), answers()]
    ask(agent(said, called), handler)
    run = only(handler, store)
    assert queries(run)[0] == "Elsa Wilby"
    assert sorted(map(str, queries(run)[1:])) == sorted(PASSAGES)  # at once, in two threads
    assert [len(step.ranked) for step in run.retrievals] == [1, 1, 1]
    assert {passage.text for passage in run.evidence} == set(PASSAGES.values())
    assert run.answer == GOLD
    assert (run.usage.input_tokens, run.usage.output_tokens, run.usage.calls) == (110, 17, 3)
    assert run.steps[0].shown == ()
    assert len(run.steps[-1].shown) == 2


def test_a_retrievers_tool_is_one_search(
    handler: hopscope.HopscopeHandler, store: hopscope.Store
) -> None:
    of_retriever = create_retriever_tool(Shelf(), "search", "Searches the shelf.")
    ask(agent([calls("Elsa Wilby"), answers()], of_retriever), handler)
    run = only(handler, store)
    assert queries(run) == ["Elsa Wilby"]
    assert run.steps[1].ranked[0].passage.id == "Elsa Wilby"


def test_only_named_tools_search(store: hopscope.Store) -> None:
    handler = hopscope.HopscopeHandler(store, tools=["search"])
    said = [calls("Elsa Wilby"), calls("Salwin Pictures", name="numbered"), answers()]
    ask(agent(said, search, numbered), handler)
    assert queries(only(handler, store)) == ["Elsa Wilby"]


def test_an_asynchronous_agent_is_the_same(
    handler: hopscope.HopscopeHandler, store: hopscope.Store
) -> None:
    graph = agent([calls(*PASSAGES), answers()], search)
    asked = {"messages": [{"role": "user", "content": QUESTION}]}
    asyncio.run(graph.ainvoke(asked, config={"callbacks": [handler]}))
    run = only(handler, store)
    assert sorted(map(str, queries(run))) == sorted(PASSAGES)
    assert run.answer == GOLD


class Hops(TypedDict, total=False):
    question: str
    found: Annotated[list[str], operator.add]
    answer: str


def test_functions_in_nodes_are_searches_of_the_graphs_run(
    handler: hopscope.HopscopeHandler, store: hopscope.Store
) -> None:
    """Parallel nodes without any part of LangChain in them; the nodes tell the run that they
    belong to by LangChain's own context."""
    find = hopscope.retrieval(look_up)

    def node(title: str) -> Any:
        return lambda state: {"found": [each["text"] for each in find(title)]}

    graph = StateGraph(Hops)
    for title in PASSAGES:
        graph.add_node(title, node(title))
        graph.add_edge(START, title)
    graph.add_node("read", lambda state: {"answer": GOLD})
    graph.add_edge([*PASSAGES], "read")
    graph.add_edge("read", END)
    graph.compile().invoke({"question": QUESTION}, config={"callbacks": [handler]})
    run = only(handler, store)
    assert sorted(map(str, queries(run))) == sorted(PASSAGES)
    assert run.answer == GOLD


def test_parallel_branches_of_a_chain_are_one_run(
    handler: hopscope.HopscopeHandler, store: hopscope.Store
) -> None:
    branches = RunnableParallel(
        {title: RunnableLambda(lambda _, t=title: t) | Shelf() for title in PASSAGES}
    )
    (branches | RunnableLambda(lambda _: GOLD)).invoke(QUESTION, config={"callbacks": [handler]})
    run = only(handler, store)
    assert sorted(map(str, queries(run))) == sorted(PASSAGES)


def test_a_failed_chain_is_a_failed_run(
    handler: hopscope.HopscopeHandler, store: hopscope.Store
) -> None:
    failing = RunnableLambda(lambda _: "") | Shelf()
    with pytest.raises(RuntimeError, match="an empty query"):
        failing.invoke(QUESTION, config={"callbacks": [handler]})
    run = only(handler, store)
    assert run.status == "failed"
    assert run.error is not None
    assert (run.error.type, run.error.message) == ("RuntimeError", "an empty query")


def test_within_a_recording_calls_are_parts_of_it(
    handler: hopscope.HopscopeHandler, store: hopscope.Store
) -> None:
    config = {"callbacks": [handler]}
    with hopscope.recording(QUESTION, gold=GOLD, store=store) as run:
        Shelf().invoke("Elsa Wilby", config=config)
        chain().invoke("Salwin Pictures", config=config)
    assert handler.stored == []
    stored = store.load(run.id)
    assert queries(stored) == ["Elsa Wilby", "Salwin Pictures"]
    assert stored.question.answers == (GOLD,)
    assert stored.answer == GOLD


def test_a_decorated_function_within_a_tool_is_one_search(
    handler: hopscope.HopscopeHandler, store: hopscope.Store
) -> None:
    """The innermost place of a recording, whichever way it is known."""
    find = hopscope.retrieval(look_up)

    @tool
    def search(query: str) -> str:
        """Search the shelf."""
        return "\n".join(each["text"] for each in find(query))

    with hopscope.recording(QUESTION, store=store) as run:
        ask(agent([calls("Elsa Wilby"), answers()], search), handler)
    assert queries(store.load(run.id)) == ["Elsa Wilby"]


def test_a_search_alone_is_no_run(handler: hopscope.HopscopeHandler) -> None:
    Shelf().invoke("Elsa Wilby", config={"callbacks": [handler]})
    assert handler.stored == handler.problems == []


def test_runs_of_many_threads_are_kept_apart(
    handler: hopscope.HopscopeHandler, store: hopscope.Store
) -> None:
    titles = [*PASSAGES] * 4
    steps = RunnableLambda(lambda title: title) | Shelf() | (lambda found: found[0].page_content)
    steps.batch(titles, config={"callbacks": [handler], "max_concurrency": 4})
    runs = [store.load(id) for id in handler.stored]
    assert sorted(run.question.text for run in runs) == sorted(titles)
    for run in runs:
        assert queries(run) == [run.question.text]
        assert run.answer == PASSAGES[run.question.text]
