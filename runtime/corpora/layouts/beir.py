"""BEIR's corpus.jsonl: `{_id, title, text}`. Queries and judgements are separate files.

Source: Thakur et al. 2021, arXiv 2104.08663.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hopscope.runtime.corpora.records.fields import body, identity, string
from hopscope.runtime.corpora.records.reading import PassageDraft


def matches(value: Mapping[str, Any]) -> bool:
    return "text" in value and "_id" in value


def read(value: Mapping[str, Any]) -> Iterator[PassageDraft]:
    yield PassageDraft(body(value, "text"), string(value, "title"), identity(value, "_id"))
