"""Hopscope's passages: `{id, title, text}`; only the text is required.

The id may be called `docid`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hopscope.runtime.corpora.records.fields import body, identity, string
from hopscope.runtime.corpora.records.reading import PassageDraft


def matches(value: Mapping[str, Any]) -> bool:
    return "text" in value and "_id" not in value


def read(value: Mapping[str, Any]) -> Iterator[PassageDraft]:
    yield PassageDraft(body(value, "text"), string(value, "title"), identity(value, "id", "docid"))
