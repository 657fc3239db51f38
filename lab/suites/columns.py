"""Columns of values over questions, and differences between two of them.

`tracing.statistics.over_questions.differences` pairs questions one by one, which ratios of sums
(micro-F1, MRLR) do not allow: here questions are drawn with replacement, the same ones for both,
and the ratios are subtracted in each draw (percentile bootstrap).
"""

from collections.abc import Sequence

import numpy as np

from hopscope.tracing.statistics.intervals import of_resamples
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, Difference

FAILED = "no run came to an end"


def mean(values: Sequence[float | None], *, binary: bool = False, reason: str = FAILED) -> Column:
    """The mean over questions, one value each; None where there is none, for this `reason`."""
    measured = np.array([value is not None for value in values], float)
    above = np.array([value or 0.0 for value in values], float)
    asked = np.ones(len(values))
    return Column(above, measured, measured, asked, binary=binary, reason=reason)


def apart(one: Column, other: Column, bootstrap: Bootstrap) -> Difference:
    """The first ratio minus the second, over the same questions."""
    above = np.stack([one.above, other.above])
    below = np.stack([one.below, other.below])
    asked = (one.asked > 0) & (other.asked > 0)
    measured = int(((one.measured > 0) & (other.measured > 0)).sum())
    missing = next((c.reason for c in (one, other) if not c.below.sum()), None)
    if missing is not None:
        return Difference(value=None, reason=missing, measured=measured, total=int(asked.sum()))
    first, second = (above.sum(axis=1) / below.sum(axis=1)).tolist()
    drawn = bootstrap.draw(above, below)
    low, high = of_resamples(drawn[:, 0] - drawn[:, 1]) or (None, None)
    return Difference(
        value=first - second,
        measured=measured,
        total=int(asked.sum()),
        low=low,
        high=high,
        interval=""
        if low is None
        else f"bootstrap over questions(percentile, resamples={bootstrap.resamples}, "
        f"seed={bootstrap.seed})",
    )
