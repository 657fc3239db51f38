"""Pairs that a tolerance leaves out: the replies whose agreement can change a belief by no more.

A reply of weight w that is not compared with the golds changes the belief by at most w; one that is
compared in one direction only, by w times what the other direction can add. The sum over replies
bounds the difference from the belief with all pairs, whatever the entailment model would say.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from hopscope.tracing.beliefs.belief import Floats

NONE: frozenset[str] = frozenset()


def masses(texts: Sequence[str], weights: Floats | Sequence[float]) -> dict[str, float]:
    """The weight of each distinct text, in the order of first appearance. An empty text is compared
    at no cost and has no entry."""
    found: dict[str, float] = {}
    for text, weight in zip(texts, weights, strict=True):
        if text:
            found[text] = found.get(text, 0.0) + float(weight)
    return found


def lightest(costs: Mapping[str, float], tolerance: float) -> frozenset[str]:
    """As many texts as possible whose costs sum to at most `tolerance`; none for 0."""
    return _within(sorted(costs, key=lambda text: (costs[text], text)), costs, tolerance)


def last(costs: Mapping[str, float], tolerance: float) -> frozenset[str]:
    """The longest end of the sequence of texts whose costs sum to at most `tolerance`; none for 0.

    Clusters depend on the order of texts, and the last ones cannot change those of others.
    """
    return _within(list(costs)[::-1], costs, tolerance)


def _within(ordered: Sequence[str], costs: Mapping[str, float], most: float) -> frozenset[str]:
    """The first texts in this order, as many as the costs allow."""
    if most <= 0:
        return NONE
    sums: Iterable[float] = accumulate(costs[text] for text in ordered)
    return frozenset(text for text, total in zip(ordered, sums, strict=True) if total <= most)
