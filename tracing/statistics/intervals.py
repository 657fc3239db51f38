"""Intervals that hold with ten samples: for a weighted mean, and for sums of such means.

A belief is a mean of N values in [0, 1], weighted. Its interval is Clopper and Pearson's
(1934), with the mean times the number of samples, a fraction, in the place of the count of
successes: the beta quantiles are defined for fractions too, and values inside [0, 1] vary less
than the 0 and 1 the method is exact for. Weights enter by the effective number of samples
1/Σw² (Kish 1965), which is N for equal weights and less for others. The percentile bootstrap is
not used for single scores: ten equal samples give it an interval without width.

A reply that no sample showed can outweigh those that did. When ten samples agree, the interval must
allow for it: it is widened to the mean that follows if the unseen replies have the largest
probability and weight that the samples allow (`UnseenReplies`). Without that, a 95 % interval of
ten samples covers 89 % where a rare answer outweighs a common one of probability .8 by a multiple;
with it 95 % and more (`benchmarks/estimation/intervals.py`).

A difference, or any linear combination of independent means, gets the interval of MOVER
(Zou & Donner 2008; for two proportions Newcombe's 1998 hybrid score method), which recovers
each mean's variance from its own interval and so stays asymmetric near 0 and 1. Intervals that
are certain, those of enumerated scores, do not average out: their ends are added.

Statistics over questions are resampled: `quantiles` alone turns resampled values into an interval.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95
TAILS = ((1 - LEVEL) / 2, 1 - (1 - LEVEL) / 2)
"""The quantiles of resampled values at the ends of an interval."""


class Interval(NamedTuple):
    low: float
    high: float


class ValueInterval(NamedTuple):
    """A value with its interval."""

    value: float
    low: float
    high: float
    certain: bool = False
    """Whether the interval always holds, not only in 95 % of cases."""


class UnseenReplies(NamedTuple):
    """Bounds on the replies that no sample showed."""

    mass: float
    """Upper bound of their probability from the samples' likelihoods; 1 without one."""
    weight: float
    """Upper bound of one reply's weight, in mean weights of the samples."""


def effective_samples(weights: Sequence[float]) -> float:
    """Kish's (Σw)²/Σw²: between 1 and the number of positive weights."""
    return sum(weights) ** 2 / sum(weight * weight for weight in weights)


def clopper_pearson(mean: float, samples: float, level: float = LEVEL) -> Interval:
    """Interval of a mean of values in [0, 1]; `samples` may be a fraction.

    Raises:
        ValueError: the mean is not in [0, 1] or there are no samples.
    """
    if not 0.0 <= mean <= 1.0 or samples <= 0:
        raise ValueError(f"no interval for a mean of {mean} over {samples} samples")
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    hits, misses = mean * samples, (1 - mean) * samples
    # Beta quantiles; those of scipy.stats are the same, and take half a second to import.
    low = float(betaincinv(hits, misses + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, misses, 1 - tail)) if misses > 0 else 1.0
    # Quantiles of counts close to 0 or N are accurate to about 1e-9 only.
    return Interval(min(low, mean), max(high, mean))


def weighted_mean(
    mean: float,
    weights: Sequence[float],
    level: float = LEVEL,
    *,
    unseen: UnseenReplies | None = None,
) -> Interval:
    """Interval of a mean of values in [0, 1] under these weights; without `unseen` a value that no
    sample showed weighs as much as the samples do."""
    low, high = clopper_pearson(mean, effective_samples(weights), level)
    if unseen is None:
        return Interval(low, high)
    # The largest probability that all samples miss: Clopper and Pearson's bound for zero hits.
    missed = min(unseen.mass, 1 - ((1 - level) / 2) ** (1 / len(weights)))
    seen, heavy = 1 - missed, missed * unseen.weight
    return Interval(
        min(low, mean * seen / (seen + heavy)), max(high, (mean * seen + heavy) / (seen + heavy))
    )


def quantiles(values: ArrayLike, tails: Sequence[float] | NDArray[np.float64] = TAILS) -> Interval:
    """The interval between two quantiles of resampled values.

    Args:
        tails: by default those of the percentile bootstrap (Efron 1979); corrected bootstraps have
            others.
    """
    return Interval(*np.quantile(np.asarray(values, float), tails).tolist())


def of_resamples(values: ArrayLike, *, rounding: float = 0.0) -> Interval | None:
    """The percentile bootstrap's interval; NaN are left out.

    None if its ends differ by no more than `rounding`, or without values: resampling that changes
    nothing does not measure the uncertainty.
    """
    drawn = np.asarray(values, float)
    known = drawn[np.isfinite(drawn)]
    if not len(known):
        return None
    found = quantiles(known)
    return found if found.high - found.low > rounding else None


def combination(terms: Sequence[tuple[float, ValueInterval]]) -> ValueInterval:
    """Σ cᵢ·θᵢ of independent estimates with its interval (Zou & Donner 2008, eq. 9-10).

    `terms` holds pairs of coefficient and estimate. No terms: exactly 0.
    """
    value = below = above = surely_below = surely_above = 0.0
    for coefficient, (estimate, low, high, certain) in terms:
        ends = sorted((coefficient * low, coefficient * high))
        scaled = coefficient * estimate
        value += scaled
        if certain:
            surely_below += scaled - ends[0]
            surely_above += ends[1] - scaled
        else:
            below += (scaled - ends[0]) ** 2
            above += (ends[1] - scaled) ** 2
    return ValueInterval(
        value,
        value - surely_below - sqrt(below),
        value + surely_above + sqrt(above),
        certain=all(estimate.certain for _, estimate in terms),
    )


def difference(after: ValueInterval, before: ValueInterval) -> ValueInterval:
    """`after` minus `before`, independent of each other, with its interval."""
    return combination([(1.0, after), (-1.0, before)])
