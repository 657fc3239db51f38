"""Bounds on the mean of bounded values that hold for every sample size, by betting.

A bettor starts with 1 and bets on each value that the mean is below a limit. If the mean is at the
limit or above, the bets are fair or worse, so the wealth exceeds 1/a with probability at most a
(Ville 1939). High wealth is therefore evidence, and 1/wealth is a p-value, for every distribution
of values in the range (Waudby-Smith and Ramdas 2021, arXiv 2010.09686).

- `p_values` is for one look at a sample of fixed size. The stakes follow the variance of the values
  so far (theorem 3 and section 4 there), and the highest wealth on the way counts.
- `wealth` is for as many looks as one likes, while values arrive. It is the mean over several fixed
  stakes. It does not depend on the order of the values.

Against Hoeffding and Bentkus' bound for differences of two scores, which does not use their
variance, `p_values` needs a ninth of the questions (`benchmarks/estimation/promise.py`).
"""

from collections.abc import Callable
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopscope.tracing.statistics.intervals import LEVEL

Floats = NDArray[np.float64]

STAKES = (0.8, 0.4, 0.2, 0.1)
"""Shares of the highest stake that keeps the wealth positive, for `wealth`."""
MOST = 0.9
"""The same for `p_values`."""
PRIOR = 1 / 16
"""The variance of values in [0, 1] before the first is seen; any number is valid."""
ROUNDING = 1e-9
"""How far sums of floating-point numbers may be outside the range."""
STEPS = 40
"""Halvings of the range in the search for a bound."""


class Range(NamedTuple):
    """Values are known to be in it."""

    low: float
    high: float


DIFFERENCES = Range(-1.0, 1.0)
"""Of two scores in [0, 1]."""


def p_values(
    values: ArrayLike, limit: float, within: Range = DIFFERENCES, *, level: float = LEVEL
) -> Floats:
    """P-values of the null hypothesis that the mean is at least `limit`, one a row.

    Args:
        values: (row, value), in an order that does not depend on them.
        level: the stakes are those that find most at this level; others are valid, too.

    Raises:
        ValueError: there are no values.
    """
    scaled, mean = _scaled(values, limit, within)
    rows, size = scaled.shape
    if mean >= 1 or mean <= 0:
        return np.full(rows, 0.0 if mean > 1 else 1.0)
    counts = np.arange(1, size + 1)
    means = (0.5 + np.cumsum(scaled, axis=1)) / (counts + 1)
    variances = (PRIOR + np.cumsum((scaled - means) ** 2, axis=1)) / (counts + 1)
    before = np.hstack([np.full((rows, 1), PRIOR), variances[:, :-1]])
    stakes = np.sqrt(2 * np.log(1 / (1 - level)) / (size * before))
    stakes = np.minimum(stakes, MOST / (1 - mean))
    logs = np.cumsum(np.log1p(stakes * (mean - scaled)), axis=1)
    return np.asarray(np.minimum(1.0, np.exp(-logs.max(axis=1))))


def upper(values: ArrayLike, within: Range = DIFFERENCES, *, level: float = LEVEL) -> float:
    """An upper bound of the mean of a sample of fixed size."""
    row = np.asarray(values, float)[None]
    return _bound(
        lambda limit: float(p_values(row, limit, within, level=level)[0]) <= 1 - level, within
    )


def needed(
    values: ArrayLike,
    limit: float,
    within: Range = DIFFERENCES,
    *,
    level: float = LEVEL,
    most: int = 10_000_000,
) -> int:
    """The sample size at which `p_values` falls below 1 - level, if its values are like these and
    their variance is known; at least `most` if that takes more, or if the mean is not below the
    limit."""
    (scaled,), mean = _scaled(values, limit, within)
    if scaled.mean() >= mean:
        return most
    goal, variance = np.log(1 / (1 - level)), max(1e-9, float(scaled.var()))
    size = 1
    while size < most:
        stake = min(np.sqrt(2 * goal / (size * variance)), MOST / (1 - mean))
        if size * float(np.log1p(stake * (mean - scaled)).mean()) >= goal:
            return size
        size = ceil(size * 1.02)
    return most


def wealth(values: ArrayLike, limit: float, within: Range = DIFFERENCES) -> float:
    """The wealth of who bets that the mean is below `limit`. If it is not, the chance that the
    wealth ever reaches 1/a while values are added is at most a; 1 without values."""
    return _mixture(*_scaled(values, limit, within))


def looks(
    values: ArrayLike,
    limit: float,
    within: Range = DIFFERENCES,
    *,
    level: float = LEVEL,
    most: int = 10_000_000,
) -> int:
    """The number of values at which `wealth` would show that the mean is below the limit, if they
    went on like these; `most` if that takes more."""
    scaled, mean = _scaled(values, limit, within)
    if not scaled.size or not 0 < mean < 1:
        return 1 if mean >= 1 else most
    stakes = np.array(STAKES)[:, None] / (1 - mean)
    growth = float(np.log1p(stakes * (mean - scaled[0])).mean(axis=1).max())
    if growth <= 0:
        return most
    return min(most, ceil(float(np.log(len(STAKES) / (1 - level))) / growth))


def bounds(
    values: ArrayLike, within: Range = DIFFERENCES, *, level: float = LEVEL
) -> tuple[float, float]:
    """A lower and an upper bound of the mean, by `wealth`. Each one alone holds with this level at
    all looks together."""
    enough = 1 / (1 - level)
    values = np.asarray(values, float)
    high = _bound(lambda limit: wealth(values, limit, within) >= enough, within)
    mirrored = Range(-within.high, -within.low)
    low = -_bound(lambda limit: wealth(-values, limit, mirrored) >= enough, mirrored)
    return low, high


def _scaled(values: ArrayLike, limit: float, within: Range) -> tuple[Floats, float]:
    """Values (row, value) and limit as parts of the range."""
    given = np.atleast_2d(np.asarray(values, float))
    low, high = within
    if given.size and not (given.min() >= low - ROUNDING and given.max() <= high + ROUNDING):
        raise ValueError(f"values from {given.min():g} to {given.max():g} are not in {within}")
    return (np.clip(given, low, high) - low) / (high - low), (limit - low) / (high - low)


def _mixture(scaled: Floats, mean: float) -> float:
    if mean >= 1 or mean <= 0:
        return np.inf if mean > 1 else 1.0
    different, counts = np.unique(scaled[0], return_counts=True)
    stakes = np.array(STAKES)[:, None] / (1 - mean)
    logs = np.log1p(stakes * (mean - different)) @ counts
    return float(np.exp(np.minimum(logs, 700.0)).mean())


def _bound(shown: Callable[[float], bool], within: Range) -> float:
    """The least limit that the mean is shown to be below; the range's end if there is none."""
    low, high = within
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high
