"""Hits for passages in a reranker's order."""

from collections.abc import Sequence

from hopscope.runtime.types import Hit, Passage


def by_place(passages: Sequence[Passage]) -> tuple[Hit, ...]:
    """The hits with the scores 1, 1/2, 1/3, ... by place."""
    return tuple(Hit(passage=p, score=1 / place) for place, p in enumerate(passages, start=1))
