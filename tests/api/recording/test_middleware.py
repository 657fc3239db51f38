"""`hopscope.middleware` and `hopscope.guarded`: searches of real agents and graphs of LangChain are
declined where they are not worth it, and the run tells why."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph

import hopscope
from hopscope.runtime.prompting.loading import load
from hopscope.runtime.types import Decision, Generation, Usage
from hopscope.tracing.reports import decisions
from tests.api.recording.shelf import GOLD, PASSAGES, QUESTION, answers, calls, look_up, model
from tests.fakes import ScriptedReader
from tests.tracing.policies.routers import route
from tests.tracing.policies.test_policies import value_file


@pytest.fixture(scope="module")
def store() -> Iterator[hopscope.Store]:
    with hopscope.Store.open("sqlite://") as opened:
        yield opened


@tool
def search(query: str) -> str:
    """Search the shelf."""
    return "\n".join(each["text"] for each in look_up(query))


@tool
def clock(query: str) -> str:
    """Tell the time."""
    return "noon"


def synchronous(agent: Any, asked: Any, config: Any) -> Any:
    return agent.invoke(asked, config=config)


def asynchronous(agent: Any, asked: Any, config: Any) -> Any:
    return asyncio.run(agent.ainvoke(asked, config=config))


Invoke = Callable[[Any, Any, Any], Any]


def told(store: hopscope.Store, invoke: Invoke, guard: Any, *said: AIMessage) -> tuple[Any, Any]:
    """What the model was told by its tools, and the run."""
    agent = create_agent(model(*said), [search, clock], middleware=[guard])
    handler = hopscope.HopscopeHandler(store, tools=["search"])
    asked = {"messages": [{"role": "user", "content": QUESTION}]}
    messages = invoke(agent, asked, {"callbacks": [handler]})["messages"]
    assert handler.problems == []
    [id] = handler.stored
    return [m.content for m in messages if isinstance(m, ToolMessage)], store.load(id)


def made(run: hopscope.Run) -> list[tuple[str | None, bool | None]]:
    """The query of each step that should search, and what was decided."""
    return [
        (step.query, step.decision and step.decision.retrieve)
        for step in run.steps
        if step.kind == "retrieve"
    ]


@pytest.mark.parametrize("invoke", [synchronous, asynchronous])
def test_a_search_beyond_the_limit_is_declined(store: hopscope.Store, invoke: Invoke) -> None:
    """Of two that the model asks for at once the first is carried out, whichever thread begins."""
    guard = hopscope.middleware(limits=hopscope.Limits(retrievals=1), tools=["search"])
    said = [calls(*PASSAGES), calls("now", name="clock"), answers()]
    heard, run = told(store, invoke, guard, *said)
    assert heard == [
        PASSAGES["Elsa Wilby"],
        "This search was not carried out: 1 of 1 retrievals are spent. Answer now, from what you "
        "have found.",
        "noon",
    ]
    assert sorted(made(run), key=str) == [("Elsa Wilby", True), (None, False)]
    assert run.answer == GOLD
    outcomes = {row.decision.retrieve: row.decision for row in decisions.explain(run, [])}
    assert outcomes[False].policy == "limit:budget_retrievals"
    assert outcomes[False].retrieval == 1
    assert run == store.load(run.id)


def test_a_policy_learned_from_a_workflow_guards_an_application(
    store: hopscope.Store, tmp_path: Path
) -> None:
    """It was learned with its reader, and from no run of the application."""
    file = value_file(tmp_path, doubt=0.0, price=0.01)
    guard = hopscope.middleware(f"value:{file}", reader=ScriptedReader(), tools=["search"])
    heard, run = told(store, synchronous, guard, calls("Elsa Wilby"), answers())
    assert heard[0].startswith("This search was not carried out")
    assert made(run) == [(None, False)]
    other = value_file(tmp_path, reader="tiny")
    with pytest.raises(hopscope.UsageError, match="was learned for the reader tiny"):
        hopscope.middleware(f"value:{other}", reader=ScriptedReader(), tools=["search"])


@pytest.mark.parametrize("guarding", ["middleware", "guarded"])
def test_a_policy_of_runs_with_other_prompts_is_warned_of(
    tmp_path: Path, guarding: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, when it is given, as `eval` does; not where it is asked in the prompts of its runs."""
    name = load("ircot-authors").name

    def made(*known: str, **how: Any) -> Any:
        policy = f"value:{value_file(tmp_path, prompts=known)}"
        if guarding == "guarded":
            return hopscope.guarded(hop, policy, reader=ScriptedReader(), **how)
        return hopscope.middleware(policy, reader=ScriptedReader(), tools=["search"], **how)

    for known, how in (((), {}), (("default",), {}), ((name,), {"prompts": "ircot-authors"})):
        made(*known, **how)
    assert not caplog.records
    made(name)
    [record] = caplog.records
    assert f"runs with the prompts {name}, and these are with the prompts default" in (
        record.getMessage()
    )
    with pytest.raises(hopscope.UsageError, match="ircot-authors"):
        made(prompts="ircot-author")


def test_a_policy_declines_and_its_name_is_told(store: hopscope.Store) -> None:
    guard = hopscope.middleware("fixed:1", tools="search", message="No: {reason}")
    said = [calls("Elsa Wilby"), calls("Salwin Pictures"), answers()]
    heard, run = told(store, synchronous, guard, *said)
    assert heard[1].startswith("No: ")
    assert made(run) == [("Elsa Wilby", True), (None, False)]
    assert run.steps[1].decision is not None
    assert run.steps[1].decision.policy == "fixed:1"
    assert run.steps[3].evidence == run.steps[1].evidence


class Asking:
    """A policy that asks its reader about the evidence."""

    name = "asking"

    def decide(self, moment: Any, reader: Any) -> Decision:
        assert moment.question.text == QUESTION
        from hopscope.tracing.signals.draft import draft

        said = draft(moment, reader).text
        return Decision(policy=self.name, retrieve=said == "unknown", reason=said)


def test_what_a_policy_asks_is_part_of_the_run(store: hopscope.Store) -> None:
    replies = [[Generation(text=text, usage=Usage(calls=1))] for text in ("unknown", GOLD)]
    reader = ScriptedReader(replies)
    guard = hopscope.middleware(Asking(), reader=reader, tools=["search"])
    said = [calls("Elsa Wilby"), calls("Salwin Pictures"), answers()]
    _, run = told(store, synchronous, guard, *said)
    assert made(run) == [("Elsa Wilby", True), (None, False)]
    asked = [step.usage.calls for step in run.steps if step.kind == "retrieve"]
    assert asked == [1, 1]
    assert run.usage.calls == 5  # three of the agent
    assert PASSAGES["Elsa Wilby"] in reader.generated[-1][0].prompt.text


def test_a_policy_asks_in_the_prompts_that_are_given(store: hopscope.Store) -> None:
    seen = []

    class Seeing(Asking):
        def decide(self, moment: Any, reader: Any) -> Decision:
            seen.append(moment.prompts.name)
            return Decision(policy=self.name, retrieve=False, reason="enough")

    for how in ({}, {"prompts": "ircot-authors"}):
        guard = hopscope.middleware(Seeing(), tools=["search"], **how)
        told(store, synchronous, guard, calls("Elsa Wilby"), answers())
    assert seen == ["default", load("ircot-authors").name]


def test_a_router_chooses_once(store: hopscope.Store, tmp_path: Path) -> None:
    """By the question alone it needs no reader; its arm `one` allows one search."""
    guard = hopscope.middleware(route(tmp_path) + ",draft=false", tools=["search"])
    said = [calls("Elsa Wilby"), calls("Orlin Games"), answers()]
    _, run = told(store, synchronous, guard, *said)
    assert [allowed for _, allowed in made(run)] == [True, False]
    last = decisions.explain(run, [])[-1]
    assert last.sentence.startswith("It did not search, because one was chosen before the first")


@pytest.mark.parametrize(
    "policy",
    [
        "margin:0.5",
        "entropy",
        "maxentropy",
        "logprob",
        "flare",
        "repeat",
        "tasr",
        "grogu",
        "self_report",
    ],
)
def test_a_policy_without_its_reader_says_so_at_once(policy: str) -> None:
    """The agent ran up to its first search, or to the second, before it failed."""
    with pytest.raises(hopscope.UsageError, match=f"the policy {policy} asks a reader: give one"):
        hopscope.middleware(policy, tools=["search"])
    with pytest.raises(hopscope.UsageError, match=f"the policy {policy} asks a reader: give one"):
        hopscope.guarded(lambda state: state, policy)


def test_a_learned_policy_that_comes_to_ask_without_a_reader_says_so(
    store: hopscope.Store, tmp_path: Path
) -> None:
    """Whether it asks is in its file."""
    guard = hopscope.middleware(route(tmp_path), tools=["search"])
    with pytest.raises(hopscope.HopscopeError, match="this policy asks a reader: give one"):
        told(store, synchronous, guard, calls("Elsa Wilby"), answers())


def test_decisions_need_a_recording() -> None:
    """Without one nothing would be known of the run, and a limit would never hold."""
    agent = create_agent(
        model(calls("Elsa Wilby")), [search], middleware=[hopscope.middleware("fixed:1")]
    )
    with pytest.raises(hopscope.UsageError, match="decisions need a recording"):
        agent.invoke({"messages": [{"role": "user", "content": QUESTION}]})


def test_mistakes_are_told_at_once() -> None:
    with pytest.raises(hopscope.UsageError, match="fixed"):
        hopscope.middleware("fixd:1")
    with pytest.raises(hopscope.UsageError, match="limit the tokens"):
        hopscope.middleware(limits=hopscope.Limits(cost=1.0))


class Hops(TypedDict, total=False):
    question: str
    documents: list[str]
    rounds: int
    answer: str


def looping(node: Any) -> Any:
    """A graph that searches until it is told that it has enough, at most four times."""
    graph = StateGraph(Hops)
    graph.add_node("retrieve", node)
    graph.add_node("read", lambda state: {"answer": GOLD})
    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges(
        "retrieve", lambda state: "read" if state["rounds"] > 3 else "retrieve"
    )
    graph.add_edge("read", END)
    return graph.compile()


def hop(state: Hops) -> Hops:
    found = hopscope.retrieval(look_up)([*PASSAGES][state.get("rounds", 0)])
    texts = [*state.get("documents", []), *(each["text"] for each in found)]
    return {"documents": texts, "rounds": state.get("rounds", 0) + 1}


async def hop_async(state: Hops) -> Hops:
    return hop(state)


@pytest.mark.parametrize(("node", "invoke"), [(hop, synchronous), (hop_async, asynchronous)])
def test_a_guarded_node_is_left_out_where_it_is_not_worth_it(
    store: hopscope.Store, node: Any, invoke: Invoke
) -> None:
    limits = hopscope.Limits(retrievals=2)
    graph = looping(hopscope.guarded(node, limits=limits, declined={"rounds": 9}))
    handler = hopscope.HopscopeHandler(store)
    found = invoke(graph, {"question": QUESTION}, {"callbacks": [handler]})
    assert found["documents"] == [*PASSAGES.values()]
    [id] = handler.stored
    assert made(store.load(id)) == [*((title, True) for title in PASSAGES), (None, False)]


def test_limits_and_messages_that_cannot_be_used_are_refused_before_the_agent_runs() -> None:
    """A message with other braces ended the agent at the first search that was declined."""
    limits: Any = {"retrievals": 1}
    with pytest.raises(hopscope.UsageError, match=r"limits: give hopscope\.Limits"):
        hopscope.middleware("fixed:1", limits)
    for message in ("Say {answer}", 'Say {"answer": 1}', "Say {", "{}", "{reason.x}"):
        with pytest.raises(hopscope.UsageError, match="braces other than"):
            hopscope.middleware("fixed:1", message=message)
    hopscope.middleware("fixed:1", message='{reason}; say {{"answer": 1}}')
