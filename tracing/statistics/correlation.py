"""Correlation of two series: SePer's validity test, and the rank correlations of eRAG."""

from collections.abc import Callable, Hashable, Sequence
from math import inf, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau, spearmanr
from scipy.stats import t as student

from hopscope.runtime.types import Measurement
from hopscope.tracing.statistics.intervals import LEVEL, Interval, of_resamples

RankCorrelation = Literal["kendall", "spearman"]
Correlation = Literal["pearson", "kendall", "spearman"]
RESAMPLES = 1000
PERFECT = "unseen disagreement"
"""Name of the interval of a perfect correlation."""
ROUNDING = 1e-9
"""A correlation this close to 1 is perfect."""
FEWEST = 5
"""Groups of a series that must differ from its most common value, for a resampling interval."""

Floats = NDArray[np.float64]


class CorrelationTest(NamedTuple):
    statistic: float
    """Student's t with n - 2 degrees of freedom."""
    p: float
    """Two-sided."""


def pearson_test(r: float, n: int) -> CorrelationTest:
    """Test of no correlation for a Pearson coefficient `r` over `n` pairs.

    t = r √((n-2) / (1-r²)) (Dai et al. 2025, section 4.1).

    Raises:
        ValueError: fewer than three pairs, or r outside [-1, 1].
    """
    if n < 3 or not -1 <= r <= 1:
        raise ValueError(f"no correlation test for r={r} over {n} pairs")
    if abs(r) == 1:
        return CorrelationTest(r * inf, 0.0)
    statistic = r * sqrt((n - 2) / (1 - r * r))
    return CorrelationTest(statistic, float(2 * student.sf(abs(statistic), n - 2)))


def perfect(kind: Correlation, value: float, draws: int) -> tuple[float, float]:
    """95 % interval of a correlation of 1 or -1 over `draws` independent pairs or groups.

    Resampling pairs in full agreement changes nothing. But n draws miss a share q = 1 - .025^(1/n)
    of disagreeing pairs in one case of forty: at the far end of the interval that share is out of
    order. For r these pairs lie on the other side of the mean (1 - 2q); for ranks they move from
    one end to the other (tau 1 - 4q(1-q), rho 1 - 6q(1-q)).
    """
    q = 1 - ((1 - LEVEL) / 2) ** (1 / draws)
    fall = {"pearson": 2 * q, "kendall": 4 * q * (1 - q), "spearman": 6 * q * (1 - q)}[kind]
    far, near = max(-1.0, 1 - fall), 1.0
    return (far, near) if value > 0 else (-near, -far)


def rank_correlation(
    kind: RankCorrelation,
    one: Sequence[float],
    other: Sequence[float],
    *,
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Measurement:
    """Kendall's tau-b or Spearman's rho (with average ranks) of pairs of values.

    Unmeasured if a series is constant. The interval is that of the percentile bootstrap over pairs,
    because analytic ones (Fieller 1957) fail with ties, which binary scores have; a perfect
    correlation has that of `perfect`.

    Args:
        clusters: each pair's cluster, such as its question: pairs of one cluster are not
            independent and are drawn together. By default each pair is a cluster.

    Raises:
        ValueError: the series differ in length.
    """
    if len(one) != len(other):
        raise ValueError(f"{len(one)} values cannot be paired with {len(other)}")
    groups = _groups(range(len(one)) if clusters is None else clusters)
    if sum(map(len, groups)) != len(one):
        raise ValueError(f"{len(one)} pairs, but {sum(map(len, groups))} of them have a cluster")
    estimator = "kendall-tau-b" if kind == "kendall" else "spearman-rho"
    x, y = np.asarray(one, float), np.asarray(other, float)
    correlate = _tau if kind == "kendall" else _rho
    value = correlate(x, y)
    if value is None:
        reason = "fewer than two pairs" if len(x) < 2 else "a constant series has no order"
        return Measurement(value=None, reason=reason, n=len(x), estimator=estimator)
    low, high = _interval(correlate, x, y, groups, resamples, seed) or (None, None)
    if abs(value) > 1 - ROUNDING and all(_varied(side, groups) >= FEWEST for side in (x, y)):
        low, high = perfect(kind, value, len(groups))
        estimator += f"(interval={PERFECT})"
    elif low is not None:
        over = "" if clusters is None else " over clusters"
        estimator += f"(interval=percentile bootstrap{over}, resamples={resamples})"
    return Measurement(value=value, n=len(x), seed=seed, estimator=estimator, low=low, high=high)


def _tau(x: Floats, y: Floats) -> float | None:
    return None if _constant(x, y) else float(kendalltau(x, y).statistic)


def _rho(x: Floats, y: Floats) -> float | None:
    return None if _constant(x, y) else float(spearmanr(x, y).statistic)


def _constant(x: Floats, y: Floats) -> bool:
    return len(x) < 2 or bool(np.ptp(x) == 0 or np.ptp(y) == 0)


def _groups(clusters: Sequence[Hashable]) -> list[NDArray[np.intp]]:
    """The places of each cluster."""
    places: dict[Hashable, list[int]] = {}
    for place, cluster in enumerate(clusters):
        places.setdefault(cluster, []).append(place)
    return [np.array(each) for each in places.values()]


def _interval(
    correlate: Callable[[Floats, Floats], float | None],
    x: Floats,
    y: Floats,
    groups: Sequence[NDArray[np.intp]],
    resamples: int,
    seed: int,
) -> Interval | None:
    """The bootstrap interval; None if nearly all groups of a series hold one value, or if
    resampling changes nothing."""
    if any(_varied(side, groups) < FEWEST for side in (x, y)):
        return None
    rng = np.random.default_rng(seed)
    drawn = (rng.integers(0, len(groups), len(groups)) for _ in range(resamples))
    pairs = (np.concatenate([groups[which] for which in each]) for each in drawn)
    values = [value for i in pairs if (value := correlate(x[i], y[i])) is not None]
    return of_resamples(values, rounding=ROUNDING)


def _varied(side: Floats, groups: Sequence[NDArray[np.intp]]) -> int:
    """The number of groups with a value other than the most common one."""
    values, counts = np.unique(side, return_counts=True)
    commonest = values[counts.argmax()]
    return sum(bool((side[group] != commonest).any()) for group in groups)
