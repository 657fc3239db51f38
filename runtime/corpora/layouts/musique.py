"""Questions of MuSiQue, with their passages in `paragraphs`: `{idx, title, paragraph_text}`.

Source: Trivedi et al. 2022, arXiv 2108.00573. `idx` counts within one question, so it is no id.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hopscope.runtime.corpora.records.fields import body, objects, string
from hopscope.runtime.corpora.records.reading import PassageDraft


def matches(value: Mapping[str, Any]) -> bool:
    return "question" in value and "paragraphs" in value


def read(value: Mapping[str, Any]) -> Iterator[PassageDraft]:
    for paragraph in objects(value, "paragraphs"):
        yield PassageDraft(body(paragraph, "paragraph_text"), string(paragraph, "title"))
