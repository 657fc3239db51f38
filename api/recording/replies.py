"""The reply of a model, in the objects and dictionaries of the usual clients: chat completions and
responses of OpenAI, messages of Anthropic and LangChain; and prompts as text."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic_core import to_json

INPUT = ("input_tokens", "prompt_tokens")
OUTPUT = ("output_tokens", "completion_tokens")


class Reply(NamedTuple):
    """What a model replied."""

    text: str
    """Its words; calls of tools follow, one a line."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    """None: nobody counted them."""
    model: str = ""


def read(given: Any) -> Reply:
    """The reply in what a client returned; of anything else, its text."""
    value = _fields(given)
    if not isinstance(value, Mapping):
        return Reply(text(given))
    choices = value.get("choices")
    first = _fields(choices[0]) if isinstance(choices, list) and choices else {}
    message = _fields(first.get("message")) if isinstance(first, Mapping) else None
    spoken = message if isinstance(message, Mapping) else value
    content = spoken.get("content", spoken.get("output", spoken.get("text")))
    usage = _fields(value.get("usage") or value.get("usage_metadata"))
    counts = usage if isinstance(usage, Mapping) else {}
    about = value.get("response_metadata")
    model = value.get("model") or (about.get("model_name") if isinstance(about, Mapping) else None)
    calls = spoken.get("tool_calls")
    told = "\n".join(
        [*_texts(content), *map(_call, calls if isinstance(calls, list | tuple) else [])]
    )
    return Reply(
        told if content is not None or told else text(given),
        _count(counts, INPUT),
        _count(counts, OUTPUT),
        model if isinstance(model, str) else "",
    )


def prompt(given: Any) -> str:
    """All text of a prompt: a text, a message, or a list of them."""
    if isinstance(given, str):
        return given
    value = _fields(given)
    if isinstance(value, Mapping):
        return "\n".join(_texts(value.get("content"))) if "content" in value else text(given)
    if isinstance(given, Iterable):
        return "\n".join(map(prompt, given))
    return text(given)


def text(value: Any) -> str:
    """A value as text: JSON, if it is none."""
    return value if isinstance(value, str) else to_json(value, fallback=str).decode()


def _fields(value: Any) -> Any:
    """The fields of a record of pydantic; other values, classes too, as they are."""
    dump = None if isinstance(value, type) else getattr(value, "model_dump", None)
    return dump() if callable(dump) else value


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content] if content else []
    found: list[str] = []
    for part in content if isinstance(content, list) else []:
        told = _fields(part)
        if isinstance(told, Mapping):
            inner = told.get("text", told.get("content"))
            found += _texts(inner) if isinstance(inner, str | list) else []
        elif isinstance(told, str):
            found.append(told)
    return found


def _call(given: Any) -> str:
    """The call of a tool, as `search({"query": "..."})`."""
    call = _fields(given)
    if not isinstance(call, Mapping):
        return text(call)
    function = call.get("function")
    told = function if isinstance(function, Mapping) else call
    return f"{told.get('name')}({text(told.get('arguments', told.get('args', {})))})"


def _count(usage: Mapping[str, Any], names: Iterable[str]) -> int | None:
    found = (usage.get(name) for name in names)
    return next((n for n in found if isinstance(n, int) and not isinstance(n, bool)), None)
