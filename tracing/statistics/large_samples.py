"""Means over thousands of questions: intervals and tests of the normal distribution, which the
bootstrap and the randomisation test approach, from sums and sums of squares.

The interval of a ratio of sums is that of the delta method (Cochran 1977, section 6.3). The test is
the randomisation test's own limit: with random signs the sum of differences has the mean 0 and the
variance of their sum of squares.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from hopscope.tracing.statistics.intervals import LEVEL, Interval

Floats = NDArray[np.float64]

NORMAL = "normal(over questions)"
TEST = "randomisation(normal)"
LARGE = 10_000
"""Questions from which resampling takes seconds and hundreds of megabytes."""
ENOUGH = 1_000
"""Measured questions of these from which the normal distribution is near enough."""


def is_large(below: Floats) -> bool:
    """Whether a statistic with this denominator of each question is of so many of them."""
    return len(below) >= LARGE and int((below > 0).sum()) >= ENOUGH


def interval(value: float, above: Floats, below: Floats) -> Interval | None:
    """95 % interval of the ratio of the sums; None if all questions are equal.

    Args:
        value: the ratio.
        above, below: of each question.
    """
    from scipy.special import ndtri

    deviations = np.where(below > 0, above - value * below, 0.0)
    count = int((below > 0).sum())
    spread = float((deviations**2).sum())
    if spread <= 1e-24 * max(1.0, value**2) * count:
        return None
    half = float(ndtri((1 + LEVEL) / 2)) * sqrt(spread * count / (count - 1)) / float(below.sum())
    return Interval(value - half, value + half)


def p_value(differences: Floats) -> float:
    """Two-sided, if every question's sign is random."""
    from scipy.special import ndtr

    spread = float((differences**2).sum())
    return float(2 * ndtr(-abs(differences.sum()) / sqrt(spread))) if spread else 1.0
