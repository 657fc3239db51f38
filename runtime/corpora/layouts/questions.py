"""Our own questions with `passages`: `{title, text}`, and an id where they have one."""

from collections.abc import Iterator, Mapping
from typing import Any

from hopscope.runtime.corpora.fields import body, identity, objects, string
from hopscope.runtime.corpora.reading import Draft


def matches(value: Mapping[str, Any]) -> bool:
    return "question" in value and "passages" in value


def read(value: Mapping[str, Any]) -> Iterator[Draft]:
    for passage in objects(value, "passages"):
        yield Draft(body(passage, "text"), string(passage, "title"), identity(passage, "id"))
