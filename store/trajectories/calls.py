"""Calls of tools."""

from typing import NamedTuple

from hopscope.runtime.texts.literals import json_value


class Call(NamedTuple):
    """A call of a tool."""

    id: str
    name: str
    query: str
    arguments: str
    """As the model wrote them, mostly JSON."""

    def __str__(self) -> str:
        return f"{self.name}({self.arguments})"


def queried(arguments: str) -> str:
    """The query in the arguments of a call: `query`, else the only text, else all of them."""
    try:
        told = json_value(arguments)
    except ValueError:
        return arguments
    if isinstance(told, str):
        return told
    if not isinstance(told, dict):
        return arguments
    texts = [each for each in told.values() if isinstance(each, str)]
    if isinstance(told.get("query"), str):
        return str(told["query"])
    return texts[0] if len(texts) == 1 else arguments
