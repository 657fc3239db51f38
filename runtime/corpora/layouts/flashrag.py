"""FlashRAG's and pyserini's: `{id, contents}`, where the first line of the contents is the title.

Source: Jin et al. 2024, arXiv 2405.13576. A title of its own, or contents of one line, leave the
contents as they are.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hopscope.runtime.corpora.fields import body, identity, string
from hopscope.runtime.corpora.reading import Draft


def matches(value: Mapping[str, Any]) -> bool:
    return "contents" in value and "text" not in value


def read(value: Mapping[str, Any]) -> Iterator[Draft]:
    text, title = body(value, "contents"), string(value, "title")
    first, newline, rest = text.partition("\n")
    if not title and newline and rest.strip():
        title, text = first.strip().strip('"'), rest
    yield Draft(text, title, identity(value, "id", "_id", "docid"))
