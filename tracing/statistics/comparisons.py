"""Whether a utility prefers the right evidence: the validation statistics of GroGU.

A comparison has two contexts for one question. A pair is concordant if the context with the right
answer has the higher utility; the paper's F1 of it is the mean over both classes, the only one that
its counts allow.

Source: GroGU (2026), sections 4.1-4.3.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import TypeVar

Item = TypeVar("Item")


def kendall(concordant: int, discordant: int) -> float | None:
    """τ = (C - D)/(C + D), without ties; None without pairs."""
    total = concordant + discordant
    return (concordant - discordant) / total if total else None


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
