"""Whether a utility prefers the right evidence: the validation statistics of GroGU.

A comparison has two contexts for one question. A *tie* is no win and is counted apart. A pair is
concordant if the context with the right answer has the higher utility; the paper's F1 of it is the
mean over both classes, the only one that its counts allow.

Source: GroGU (2026), sections 4.1-4.3; the sign test is Fisher's, two-sided.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import NamedTuple, TypeVar

from scipy.stats import binomtest

Item = TypeVar("Item")


class Wins(NamedTuple):
    """Counts of preferences between two contexts."""

    wins: int
    losses: int
    ties: int

    @property
    def rate(self) -> float | None:
        """Wins by all comparisons; None without any."""
        total = sum(self)
        return self.wins / total if total else None

    @property
    def p_value(self) -> float | None:
        """p-value of the sign test over the comparisons without ties; None if all are ties."""
        decided = self.wins + self.losses
        return float(binomtest(self.wins, decided).pvalue) if decided else None


def wins(right: Sequence[float], wrong: Sequence[float]) -> Wins:
    """Counts of questions whose right context has a higher utility than the wrong one, or lower."""
    pairs = list(zip(right, wrong, strict=True))
    above, below = sum(r > w for r, w in pairs), sum(r < w for r, w in pairs)
    return Wins(above, below, len(pairs) - above - below)


def kendall(concordant: int, discordant: int) -> float | None:
    """τ = (C - D)/(C + D), without ties; None without pairs."""
    total = concordant + discordant
    return (concordant - discordant) / total if total else None


def accuracy(concordant: int, discordant: int) -> float | None:
    """(1 + τ)/2, the share of concordant pairs; None without pairs."""
    total = concordant + discordant
    return concordant / total if total else None


def macro_f1(tp: int, tn: int, errors: int) -> float | None:
    """Mean of both classes' F1; `errors` are false positives and false negatives together.

    None if a class neither occurs nor was predicted.
    """
    sizes = [2 * hits + errors for hits in (tp, tn)]
    if not all(sizes):
        return None
    return sum(2 * hits / size for hits, size in zip((tp, tn), sizes, strict=True)) / 2


def widest(gaps: Sequence[tuple[Item, float]], share: Fraction = Fraction(1, 2)) -> list[Item]:
    """The ⌈share⌉ of preference pairs with the largest gap in utility, in the given order; of
    equal gaps the earlier. Pairs without a gap are ties and never count."""
    decided = [(i, item, gap) for i, (item, gap) in enumerate(gaps) if gap > 0]
    ranked = sorted(decided, key=lambda each: (-each[2], each[0]))
    kept = {i for i, _, _ in ranked[: ceil(share * len(decided))]}
    return [item for i, item, _ in decided if i in kept]
