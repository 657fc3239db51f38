"""Our own: `{id, title, text}`, of which only the text must be there.

The id may be called `docid`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hopscope.runtime.corpora.fields import body, identity, string
from hopscope.runtime.corpora.reading import Draft


def matches(value: Mapping[str, Any]) -> bool:
    return "text" in value and "_id" not in value


def read(value: Mapping[str, Any]) -> Iterator[Draft]:
    yield Draft(body(value, "text"), string(value, "title"), identity(value, "id", "docid"))
