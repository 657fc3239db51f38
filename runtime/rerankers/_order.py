"""Hits of passages that a reranker has put in order."""

from collections.abc import Sequence

from hopscope.runtime.types import Hit, Passage


def by_place(passages: Sequence[Passage]) -> tuple[Hit, ...]:
    """With the scores 1, 1/2, 1/3, ... where there are no others."""
    return tuple(Hit(passage=p, score=1 / place) for place, p in enumerate(passages, start=1))
