"""Precision, recall and F1 of chosen passages against gold passages.

Micro-averaged: counts are summed over the questions before the division, as ITEM (Zhang et al.
2026, arXiv 2406.11290) reports utility judgments.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple


class SelectionCounts(NamedTuple):
    """Agreement of choices with gold passages, in counts of passages."""

    right: int
    """Chosen and gold."""
    wrong: int
    """Chosen and not gold."""
    missed: int
    """Gold and not chosen."""

    @property
    def precision(self) -> float | None:
        """None when nothing was chosen."""
        return _ratio(self.right, self.right + self.wrong)

    @property
    def recall(self) -> float | None:
        """None when nothing is gold."""
        return _ratio(self.right, self.right + self.missed)

    @property
    def f1(self) -> float | None:
        """None when nothing was chosen and nothing is gold."""
        return _ratio(2 * self.right, 2 * self.right + self.wrong + self.missed)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def agreement(pairs: Iterable[tuple[Collection[str], Collection[str]]]) -> SelectionCounts:
    """The counts over pairs of chosen and gold passage keys, one pair for each question."""
    right = wrong = missed = 0
    for chosen, gold in ((set(c), set(g)) for c, g in pairs):
        right += len(chosen & gold)
        wrong += len(chosen - gold)
        missed += len(gold - chosen)
    return SelectionCounts(right, wrong, missed)
