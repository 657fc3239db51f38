"""An agent of LangGraph as a workflow: what its tools say becomes passages."""

import json
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from hopscope.runtime.types import Usage
from tests.runtime.adapters.graphs import (
    ALBA,
    BRUNO,
    answered,
    told,
)


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
