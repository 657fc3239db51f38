"""BEIR's corpus.jsonl: `{_id, title, text}`. Its queries and judgements lie in files of their own.

Source: Thakur et al. 2021, arXiv 2104.08663.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hopscope.runtime.corpora.fields import body, identity, string
from hopscope.runtime.corpora.reading import Draft


def matches(value: Mapping[str, Any]) -> bool:
    return "text" in value and "_id" in value


def read(value: Mapping[str, Any]) -> Iterator[Draft]:
    yield Draft(body(value, "text"), string(value, "title"), identity(value, "_id"))
