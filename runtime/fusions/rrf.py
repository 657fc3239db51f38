"""Reciprocal rank fusion: a passage's score is the sum of weight / (k + rank) over the rankings.

Only ranks count, from 1, so retrievers of any kind go together. The paper has k = 60 and all
weights 1; a larger k makes the first places count for less.

Source: Cormack, Clarke, Büttcher: Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank
Learning Methods, SIGIR 2009.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from hopscope.runtime.errors import UsageError
from hopscope.runtime.fusions._tally import best_first
from hopscope.runtime.types import Hit


@dataclass(frozen=True)
class ReciprocalRank:
    """See the module."""

    _: KW_ONLY
    k: float = 60

    def __post_init__(self) -> None:
        """Raises UsageError for a constant that reverses the order."""
        if not 0 <= self.k < float("inf"):
            raise UsageError(f"rrf: k={self.k:g} must be 0 or more")

    @property
    def name(self) -> str:
        return f"rrf(k={self.k:g})"

    def fuse(self, rankings: Sequence[Sequence[Hit]], weights: Sequence[float]) -> list[Hit]:
        """See the protocol."""
        return best_first(
            (hit, weight / (self.k + rank))
            for ranking, weight in zip(rankings, weights, strict=True)
            for rank, hit in enumerate(ranking, start=1)
        )


build = ReciprocalRank
