"""One execution of a foreign graph's node: its input, its writes, its messages."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.types import Overwrite
from opentelemetry.trace import Span
from pydantic_core import to_json

from hopscope.runtime.adapters._keys import MESSAGES
from hopscope.runtime.execution.step import Log
from hopscope.runtime.types import Usage


@dataclass
class Task:
    """One execution of a node."""

    name: str
    """The node's name."""
    input: Any
    span: Span
    number: int
    """Nodes that began before it in this run."""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    log: Log = field(default_factory=Log)
    """Its calls to the run's ports."""
    seconds: float = 0.0
    writes: dict[str, list[Any]] = field(default_factory=dict)
    """The values that it wrote under each key of the state, without None."""
    _begun: float = field(default_factory=perf_counter)

    def end(self, result: Mapping[str, Any]) -> None:
        """Record the node's writes at its end."""
        self.seconds = perf_counter() - self._begun
        for key, value in result.items():
            # LangGraph's form of several writes to one key.
            several = isinstance(value, dict) and value.keys() == {"$writes"}
            written = value["$writes"] if several else [value]
            plain = (each.value if isinstance(each, Overwrite) else each for each in written)
            self.writes[key] = [each for each in plain if each is not None]

    def given(self, key: str) -> Any:
        """The input under a key; None without one."""
        if isinstance(self.input, Mapping):
            return self.input.get(key)
        return getattr(self.input, key, None)

    def own(self, key: str) -> list[Any]:
        """The values that it wrote under a key and did not get as input."""
        return [each for each in self.added(key) if not _same(each, self.given(key))]

    def added(self, key: str) -> list[Any]:
        """The value that it wrote under a key; of a list that extends the given one, the rest."""
        given = self.given(key)
        return [_rest(each, given) for each in self.writes.get(key, ())]

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages that it added."""
        before = {message.id for message in messages(self.given(MESSAGES)) if message.id}
        written = (message for each in self.own(MESSAGES) for message in messages(each))
        return [message for message in written if message.id is None or message.id not in before]

    def texts(self, *, without: str | None) -> dict[str, str]:
        """All its writes as text, except those under one key."""
        found = {key: self.own(key) for key in self.writes if key not in (without, MESSAGES)}
        told = {key: text(values[-1]) for key, values in found.items() if values}
        if said := [spoken(message) for message in self.messages]:
            told[MESSAGES] = "\n".join(said)
        return told

    def says(self, *, without: str | None) -> bool:
        """Whether it wrote text that a model may have made, except under one key."""
        keys = (key for key in self.writes if key not in (without, MESSAGES))
        words = any(_is_text(each) for key in keys for each in self.own(key))
        return words or any(not isinstance(message, ToolMessage) for message in self.messages)

    @property
    def counted(self) -> Usage | None:
        """The usage in the messages of models; None without any."""
        told = [m.usage_metadata for m in self.messages if isinstance(m, AIMessage)]
        spent = [_spent(usage) for usage in told if usage]
        return sum(spent, Usage()) if spent else None


def messages(value: Any) -> list[BaseMessage]:
    """The messages in a value, in any form that LangChain accepts."""
    if value is None:
        return []
    try:
        return convert_to_messages(value if isinstance(value, list) else [value])
    except (ValueError, NotImplementedError):
        return []


def text(value: Any) -> str:
    """A value as text: a string or message itself, several strings as lines, other values as
    JSON."""
    if _is_text(value):
        return value if isinstance(value, str) else "\n".join(value)
    if isinstance(value, BaseMessage):
        return str(value.text)
    return to_json(value, fallback=str).decode()


def answer(message: BaseMessage) -> str | None:
    """The text of a model's message; None for other messages and for calls of tools."""
    if not isinstance(message, AIMessage) or message.tool_calls:
        return None
    return text(message)


def spoken(message: BaseMessage) -> str:
    """A message in a step's output: a text, or the calls of tools."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    asked = [{"name": call["name"], "args": call["args"]} for call in calls]
    return "\n".join(filter(None, [text(message), text(asked) if asked else ""]))


def searched(arguments: Mapping[str, Any]) -> str:
    """The query in the arguments of a tool's call: `query`, else the only text, else all."""
    told = arguments.get("query")
    texts = [each for each in arguments.values() if isinstance(each, str)]
    if isinstance(told, str):
        return told
    return texts[0] if len(texts) == 1 else json.dumps(arguments, ensure_ascii=False, default=str)


def _is_text(value: Any) -> bool:
    several = isinstance(value, list | tuple) and len(value) > 0
    return isinstance(value, str) or (several and all(isinstance(each, str) for each in value))


def _rest(written: Any, given: Any) -> Any:
    lists = isinstance(written, list) and isinstance(given, list)
    if lists and 0 < len(given) < len(written) and _same(written[: len(given)], given):
        return written[len(given) :]
    return written


def _same(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except (TypeError, ValueError):  # comparison of arrays is elementwise
        return False


def _spent(usage: Mapping[str, Any]) -> Usage:
    return Usage(
        input_tokens=usage["input_tokens"],
        output_tokens=usage["output_tokens"],
        calls=1,
        thinking_tokens=usage.get("output_token_details", {}).get("reasoning", 0),
        cached_tokens=usage.get("input_token_details", {}).get("cache_read", 0),
    )
