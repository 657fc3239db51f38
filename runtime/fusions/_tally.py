"""What fusions share: passages with what each ranking gives them, in order of the sum."""

from collections.abc import Iterable

from hopscope.runtime.types import Hit


def best_first(shares: Iterable[tuple[Hit, float]]) -> list[Hit]:
    """Each passage once, as it first came, with the sum of its shares as its score."""
    first: dict[str, Hit] = {}
    sums: dict[str, float] = {}
    for hit, share in shares:
        key = hit.passage.key
        first.setdefault(key, hit)
        sums[key] = sums.get(key, 0.0) + share
    ranked = sorted(first, key=lambda key: -sums[key])
    return [first[key].model_copy(update={"score": sums[key]}) for key in ranked]
