"""Passages as Search-R1's clients and MCP's read them."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from hopscope.runtime.types import Hit


class Retrieve(BaseModel):
    """A request of Search-R1's clients."""

    queries: list[str] = Field(max_length=1024)
    topk: int | None = Field(default=None, ge=1, le=1000)
    return_scores: bool = False


class Found(BaseModel):
    """A passage, as MCP's tool returns it."""

    id: str
    title: str
    text: str
    score: float
    """Comparable within one search only."""
    source: str


class Passages(BaseModel):
    """The passages of a search, best first."""

    passages: list[Found]


def of_search_r1(hits: Sequence[Hit], *, scores: bool) -> list[dict[str, Any]]:
    """A ranking in Search-R1's form: the title in quotes is the first line of the contents."""
    documents = [
        {"id": each.passage.id, "contents": f'"{each.passage.title}"\n{each.passage.text}'}
        for each in hits
    ]
    if not scores:
        return documents
    return [
        {"document": document, "score": hit.score}
        for document, hit in zip(documents, hits, strict=True)
    ]


def of_mcp(hits: Sequence[Hit]) -> Passages:
    """A ranking as structured content."""
    return Passages(
        passages=[
            Found(
                id=hit.passage.id,
                title=hit.passage.title,
                text=hit.passage.text,
                score=hit.score,
                source=hit.passage.source,
            )
            for hit in hits
        ]
    )
