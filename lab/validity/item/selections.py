"""Chosen passages against gold ones, as columns over questions.

Micro-averages sum the counts of passages over the questions before the division, as ITEM reports
them; a question's macro value is its own. A question whose run failed counts in none.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from hopscope.lab.suites.columns import FAILED, mean
from hopscope.tracing.erag.selection import agreement
from hopscope.tracing.statistics.over_questions import Column, Floats

Choice = Collection[str] | None
"""Keys of the passages that were chosen; None where the run failed."""
NOTHING = "nothing was chosen"


def micro(made: Sequence[Choice], golds: Sequence[Collection[str]]) -> dict[str, Column]:
    """Precision, recall and F1: the right passages over those chosen, over the gold ones, and twice
    the right over the sum of both."""
    counts = [agreement([(choice or (), gold)]) for choice, gold in zip(made, golds, strict=True)]
    done = np.array([choice is not None for choice in made], float)
    right = done * [count.right for count in counts]
    chosen = done * [count.right + count.wrong for count in counts]
    gold = done * [count.right + count.missed for count in counts]
    asked = np.ones(len(made))

    def column(above: Floats, below: Floats, reason: str) -> Column:
        return Column(above, below, done, asked, reason=reason if done.any() else FAILED)

    return {
        "precision": column(right, chosen, NOTHING),
        "recall": column(right, gold, "no passage is gold"),
        "micro_f1": column(2 * right, chosen + gold, NOTHING),
    }


def macro_f1(made: Sequence[Choice], golds: Sequence[Collection[str]]) -> Column:
    """The mean of the questions' F1."""
    pairs = zip(made, golds, strict=True)
    return mean([None if c is None else agreement([(c, gold)]).f1 for c, gold in pairs])


def precision_from(
    made: Sequence[Choice], grades: Sequence[Mapping[str, int]], least: int
) -> Column:
    """The share of the chosen passages with at least this grade; those without one have 0."""
    golds = [{key for key, grade in of.items() if grade >= least} for of in grades]
    return micro(made, golds)["precision"]
