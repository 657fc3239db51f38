"""FlashRAG and pyserini: `{id, contents}`, where the first line of the contents is the title.

Source: Jin et al. 2024, arXiv 2405.13576. Contents of one line, or beside a field `title`, are all
text.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hopscope.runtime.corpora.records.fields import body, identity, string
from hopscope.runtime.corpora.records.reading import PassageDraft


def matches(value: Mapping[str, Any]) -> bool:
    return "contents" in value and "text" not in value


def read(value: Mapping[str, Any]) -> Iterator[PassageDraft]:
    text, title = body(value, "contents"), string(value, "title")
    first, newline, rest = text.partition("\n")
    if not title and newline and rest.strip():
        title, text = first.strip().strip('"'), rest
    yield PassageDraft(text, title, identity(value, "id", "_id", "docid"))
