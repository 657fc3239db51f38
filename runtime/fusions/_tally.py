"""Shared by fusions: sums the shares of each passage and sorts by the sum."""

from collections.abc import Iterable
from math import fsum

from hopscope.runtime.types import Hit


def best_first(shares: Iterable[tuple[Hit, float]]) -> list[Hit]:
    """Each passage once, in its first form, with the sum of its shares as its score."""
    first: dict[str, Hit] = {}
    own: dict[str, list[float]] = {}
    for hit, share in shares:
        key = hit.passage.key
        first.setdefault(key, hit)
        own.setdefault(key, []).append(share)
    # Rounded once: else the order of summation would decide between equal sums.
    sums = {key: fsum(each) for key, each in own.items()}
    ranked = sorted(first, key=lambda key: -sums[key])
    return [first[key].model_copy(update={"score": sums[key]}) for key in ranked]
