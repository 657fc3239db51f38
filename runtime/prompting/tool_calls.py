"""Conversations in which the model calls tools, as messages of text.

Three roles serve them: `tools` is the list of what may be called, as JSON in OpenAI's form; `calls`
is a turn of the model with its calls, as JSON; `tool` is the result of one call, in the order of
the calls. Chat templates and servers get them as `chat` writes them. A reply of a model is read
whatever the model's own form of a call, as long as that is JSON with a name and arguments: Hermes
and Qwen, Llama, Mistral. Servers that read calls themselves get them written in the first form.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hopscope.runtime.texts.literals import json_at, json_value
from hopscope.runtime.types import Message

OPENING, CLOSING = "<tool_call>", "</tool_call>"
MARKS = (OPENING, "[TOOL_CALLS]", "<|python_tag|>", "<|tool_call|>", "```json", "[", ",", CLOSING)
"""What models write before the JSON of a call."""
BEGINNING = re.compile(r'\{\s{0,8}"(?:name|arguments|parameters|id|type|function)"')
MOST = 32
"""Places of a reply where a call is looked for."""
FOREIGN = re.compile(r"<(?=/?tool_|\|)|\[(?=/?TOOL_)", re.IGNORECASE)


class Call(NamedTuple):
    """One call of a tool."""

    name: str
    arguments: Mapping[str, Any]
    """Empty if they could not be read."""


class Said(NamedTuple):
    """A model's turn: what it says, and what it calls."""

    text: str
    """What stands before the first call."""
    calls: tuple[Call, ...] = ()
    broken: bool = False
    """Whether there is the mark of a call, but none that can be read."""


def defuse(text: str) -> str:
    """The text with a space in marks of tool calls, which passages may hold."""
    return FOREIGN.sub(lambda mark: f"{mark[0]} ", text)


def read(text: str) -> Said:
    """The turn that a model's reply holds."""
    calls: list[Call] = []
    first, at = len(text), 0
    for _ in range(MOST):
        begun = BEGINNING.search(text, at)
        if begun is None:
            break
        at = begun.end()
        try:
            value, end = json_at(text, begun.start())
        except ValueError:
            continue
        if call := _call(value):
            first = min(first, begun.start())
            calls.append(call)
            at = end
    said = text[:first].rstrip()
    while calls and (mark := next((m for m in MARKS if said.endswith(m)), None)):
        said = said.removesuffix(mark).rstrip()
    broken = not calls and any(mark in text for mark in MARKS[:4])
    return Said(said.strip(), tuple(calls), broken)


def _call(value: Any) -> Call | None:
    if not isinstance(value, dict):
        return None
    value = value["function"] if isinstance(value.get("function"), dict) else value
    name = value.get("name")
    arguments = value.get("arguments", value.get("parameters"))
    if not isinstance(name, str) or arguments is None:
        return None
    if isinstance(arguments, str):
        try:
            arguments = json_value(arguments)
        except ValueError:
            arguments = {}
    return Call(name, arguments if isinstance(arguments, dict) else {})


def write(text: str, calls: Iterable[tuple[str, Any]]) -> str:
    """A turn as text that `read` understands; arguments are an object, or its JSON."""
    lines = [text] if text else []
    for name, arguments in calls:
        told = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
        lines += [OPENING, told, CLOSING]
    return "\n".join(lines)


def offered(tools: Sequence[Mapping[str, Any]]) -> Message:
    """The message that offers tools, each a function in OpenAI's form."""
    return Message(role="tools", content=json.dumps(tools, ensure_ascii=False))


def called(said: Said) -> Message:
    """The message of a turn with calls."""
    calls = [call._asdict() for call in said.calls]
    content = json.dumps({"text": said.text, "calls": calls}, ensure_ascii=False)
    return Message(role="calls", content=content)


def tools(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The tools that a conversation offers."""
    return [tool for m in messages if m.role == "tools" for tool in json.loads(m.content)]


def chat(messages: Iterable[Message], *, written: bool = False) -> list[dict[str, Any]]:
    """The turns of a conversation as chat templates take them, without the tools that it offers.

    Args:
        written: give the arguments of calls as text, as servers take them.
    """
    turns: list[dict[str, Any]] = []
    waiting: list[tuple[str, str]] = []  # identity and name of calls without a result so far
    count = 0
    for message in messages:
        if message.role == "tools":
            continue
        if message.role == "tool" and waiting:
            identity, name = waiting.pop(0)
            turn = {"role": "tool", "tool_call_id": identity, "name": name}
            turns.append(turn | {"content": message.content})
        elif message.role == "calls":
            said = json.loads(message.content)
            made = []
            for call in said["calls"]:
                count += 1
                identity = f"call{count:05}"  # Mistral wants nine letters and digits
                waiting.append((identity, call["name"]))
                arguments = json.dumps(call["arguments"]) if written else call["arguments"]
                function = {"name": call["name"], "arguments": arguments}
                made.append({"id": identity, "type": "function", "function": function})
            turns.append({"role": "assistant", "content": said["text"], "tool_calls": made})
        else:
            turns.append({"role": message.role, "content": message.content})
    return turns
