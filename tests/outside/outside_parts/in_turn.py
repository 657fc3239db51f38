"""The first of each ranking, then the second of each, and so on."""

from collections.abc import Sequence
from itertools import zip_longest

from hopscope.runtime.stages import Fusion
from hopscope.runtime.types import Hit


class InTurn:
    name = "in_turn"

    def fuse(self, rankings: Sequence[Sequence[Hit]], weights: Sequence[float]) -> list[Hit]:
        found: dict[str, Hit] = {}
        for places in zip_longest(*rankings):
            for hit in filter(None, places):
                found.setdefault(hit.passage.key, hit)
        return list(found.values())


def build() -> Fusion:
    return InTurn()
