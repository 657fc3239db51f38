"""Hopscope's questions with `passages`: `{title, text}`, and optionally an id."""

from collections.abc import Iterator, Mapping
from typing import Any

from hopscope.runtime.corpora.records.fields import body, identity, objects, string
from hopscope.runtime.corpora.records.reading import PassageDraft


def matches(value: Mapping[str, Any]) -> bool:
    return "question" in value and "passages" in value


def read(value: Mapping[str, Any]) -> Iterator[PassageDraft]:
    for passage in objects(value, "passages"):
        yield PassageDraft(body(passage, "text"), string(passage, "title"), identity(passage, "id"))
