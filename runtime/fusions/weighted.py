"""Weighted score fusion: a passage's score is the weighted sum of its normalised scores.

Scores of different retrievers are not comparable, so each ranking is first normalised over its own
passages:

    min_max   (s - min) / (max - min), in [0, 1]; 1 where all scores are equal
    max       s / max, for scores from 0 on; 0 where the highest is not above 0
    z_score   (s - mean) / standard deviation; 0 where all scores are equal
    none      s itself

A passage that is missing from a ranking gets 0 from it; under `z_score`, where 0 would be the
average, it gets the value of the last passage.

Source: Fox and Shaw: Combination of Multiple Searches, TREC-2 1994 (CombSUM); Lee: Analyses of
Multiple Evidence Combination, SIGIR 1997 (min_max).
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from statistics import fmean, pstdev
from typing import Literal

from hopscope.runtime.fusions._tally import best_first
from hopscope.runtime.types import Hit

Normalisation = Literal["min_max", "max", "z_score", "none"]


@dataclass(frozen=True)
class WeightedSum:
    """See the module."""

    _: KW_ONLY
    norm: Normalisation = "min_max"

    @property
    def name(self) -> str:
        return f"weighted(norm={self.norm})"

    def fuse(self, rankings: Sequence[Sequence[Hit]], weights: Sequence[float]) -> list[Hit]:
        """See the protocol."""
        everything = {hit.passage.key: hit for ranking in rankings for hit in reversed(ranking)}
        shares: list[tuple[Hit, float]] = []
        for ranking, weight in zip(rankings, weights, strict=True):
            scores = normalised([hit.score for hit in ranking], self.norm)
            shares += zip(ranking, [weight * score for score in scores], strict=True)
            if self.norm == "z_score" and scores:
                held = {hit.passage.key for hit in ranking}
                absent = [hit for key, hit in everything.items() if key not in held]
                shares += [(hit, weight * min(scores)) for hit in absent]
        return best_first(shares)


def normalised(scores: Sequence[float], norm: Normalisation) -> list[float]:
    """The scores of one ranking, comparable with those of another."""
    if not scores or norm == "none":
        return list(scores)
    low, high = min(scores), max(scores)
    if norm == "min_max":
        return [(score - low) / (high - low) if high > low else 1.0 for score in scores]
    if norm == "max":
        return [score / high if high > 0 else 0.0 for score in scores]
    mean, spread = fmean(scores), pstdev(scores)
    return [(score - mean) / spread if spread > 0 else 0.0 for score in scores]


build = WeightedSum
