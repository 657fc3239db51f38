"""Calls of tools in the forms that models write them."""

import json

import pytest

from hopscope.runtime.prompting import tool_calls
from hopscope.runtime.prompting.tool_calls import Call, Said
from hopscope.runtime.types import Message

SEARCH = Call("search", {"query": "a"})


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('<tool_call>\n{"name": "search", "arguments": {"query": "a"}}\n</tool_call>', ""),
        ('I look.\n<tool_call>{"arguments": {"query": "a"}, "name": "search"}', "I look."),
        ('{"name": "search", "parameters": {"query": "a"}}', ""),
        ('<|python_tag|>{"type": "function", "name": "search", "parameters": {"query": "a"}}', ""),
        ('I look.[TOOL_CALLS][{"name": "search", "arguments": {"query": "a"}}]', "I look."),
        ('[TOOL_CALLS] [{"id": "1", "name": "search", "arguments": "{\\"query\\": \\"a\\"}"}]', ""),
        ('```json\n{"function": {"name": "search", "arguments": {"query": "a"}}}\n```', ""),
    ],
    ids=["qwen", "order", "llama", "python tag", "mistral", "text", "fenced"],
)
def test_a_call_is_read_in_every_form(written: str, said: str) -> None:
    assert tool_calls.read(written) == Said(said, (SEARCH,))


def test_several_calls_stand_in_their_order() -> None:
    other = Call("search", {"query": 'b "c" {d}'})
    text = tool_calls.write("Both.", [(c.name, dict(c.arguments)) for c in (SEARCH, other)])
    assert tool_calls.read(text) == Said("Both.", (SEARCH, other))
    listed = json.dumps([c._asdict() for c in (SEARCH, other)])
    assert tool_calls.read(f"[TOOL_CALLS]{listed}").calls == (SEARCH, other)


@pytest.mark.parametrize("text", ["Miskel", "It is {old}.", '{"title": "x"}', "[1] > [2]", ""])
def test_an_answer_is_no_call(text: str) -> None:
    assert tool_calls.read(text) == Said(text)


@pytest.mark.parametrize("text", ['<tool_call>{"name": "search"', "[TOOL_CALLS] search(a)"])
def test_a_mark_without_a_call_is_broken(text: str) -> None:
    assert tool_calls.read(text).broken


def test_arguments_that_cannot_be_read_are_none() -> None:
    assert tool_calls.read('{"name": "search", "arguments": "query a"}').calls == (
        Call("search", {}),
    )


def test_results_belong_to_calls_in_their_order() -> None:
    said = Said("Both.", (SEARCH, Call("search", {"query": "b"})))
    tool = {"type": "function", "function": {"name": "search", "description": "Finds."}}
    messages = [
        tool_calls.offered([tool]),
        Message(role="user", content="Who?"),
        tool_calls.called(said),
        Message(role="tool", content="found a"),
        Message(role="tool", content="found b"),
        tool_calls.called(Said("", (SEARCH,))),
        Message(role="tool", content="again a"),
    ]
    assert tool_calls.tools(messages) == [tool]
    turns = tool_calls.chat(messages, written=True)
    assert [turn["role"] for turn in turns] == [
        "user", "assistant", "tool", "tool", "assistant", "tool",
    ]  # fmt: skip
    made = [call["id"] for turn in turns for call in turn.get("tool_calls", ())]
    assert len(set(made)) == 3
    assert all(len(identity) == 9 and identity.isalnum() for identity in made)
    assert [turn["tool_call_id"] for turn in turns if turn["role"] == "tool"] == made
    assert turns[1]["tool_calls"][0]["function"]["arguments"] == '{"query": "a"}'
    assert tool_calls.chat(messages)[1]["tool_calls"][0]["function"]["arguments"] == {"query": "a"}
