"""Intervals at N = 10: known values, and coverage on simulated readers."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy.stats import binomtest

from hopscope.tracing.beliefs import belief
from hopscope.tracing.statistics.intervals import (
    Interval,
    ValueInterval,
    clopper_pearson,
    combination,
    difference,
    effective_samples,
    of_resamples,
    quantiles,
    weighted_mean,
)

REPETITIONS = 1000
"""With fixed seeds. The true coverages are .94 and more, measured over 20,000 repetitions."""


@pytest.mark.parametrize("hits", range(11))
def test_whole_counts_give_the_textbook_interval(hits: int) -> None:
    expected = binomtest(hits, 10).proportion_ci(method="exact")
    assert clopper_pearson(hits / 10, 10) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_ten_equal_samples_still_leave_room() -> None:
    """The bootstrap gives ten equal samples an interval without width."""
    low, high = clopper_pearson(1.0, 10)
    assert (low, high) == pytest.approx((0.6915, 1.0), abs=1e-4)


def test_uneven_weights_count_as_fewer_samples() -> None:
    assert effective_samples([0.1] * 10) == pytest.approx(10)
    assert effective_samples([1, 0, 0]) == 1
    assert effective_samples([0.75, 0.25]) == pytest.approx(1.6)
    even, uneven = weighted_mean(0.5, [0.5, 0.5]), weighted_mean(0.5, [0.9, 0.1])
    assert uneven.low < even.low < even.high < uneven.high


@pytest.mark.parametrize(("mean", "samples"), [(1.1, 10), (-0.1, 10), (0.5, 0)])
def test_what_is_no_mean_is_refused(mean: float, samples: float) -> None:
    with pytest.raises(ValueError, match="no interval"):
        clopper_pearson(mean, samples)


def test_the_difference_of_proportions_is_newcombes_hybrid() -> None:
    """By hand: .5 - sqrt(.1² + .2²) and .5 + sqrt(.05² + .1²)."""
    after, before = ValueInterval(0.8, 0.7, 0.85), ValueInterval(0.3, 0.2, 0.5)
    found = difference(after, before)
    assert found.value == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5 - (0.1**2 + 0.2**2) ** 0.5)
    assert found.high == pytest.approx(0.5 + (0.05**2 + 0.1**2) ** 0.5)
    assert combination([]) == (0, 0, 0, True)


def test_ends_of_certain_intervals_are_added() -> None:
    """Both could be at their ends at once: .3 and .3 below, where MOVER says sqrt(.18)."""
    one = ValueInterval(0.5, 0.2, 0.6, certain=True)
    found = combination([(1.0, one), (1.0, one)])
    assert found == pytest.approx((1.0, 0.4, 1.2, True))
    mixed = combination([(1.0, one), (-1.0, ValueInterval(0.1, 0.1, 0.5))])
    assert mixed == pytest.approx((0.4, 0.4 - 0.3 - 0.4, 0.4 + 0.1, False))


class SimulatedReader:
    """Five answers, the first of them right with probability `truth`. `tilt` makes the mean
    log-probability of an answer follow its probability, as it does for language models."""

    def __init__(self, truth: float, tilt: float) -> None:
        self.p = np.array([truth, *[(1 - truth) / 4] * 4])
        self.lennorm = tilt * np.log(self.p)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Which replies are right, and their mean log-probabilities."""
        drawn = rng.choice(5, size=n, p=self.p)
        return (drawn == 0).astype(float), self.lennorm[drawn]

    @property
    def limit(self) -> float:
        """What length-normalised softmax weights converge to: E[e^l right] / E[e^l]."""
        tilted = self.p * np.exp(self.lennorm)
        return float(tilted[0] / tilted.sum())


Draw = Callable[[np.random.Generator], tuple[float, np.ndarray]]


@cache
def interval(value: float, samples: float) -> Interval:
    return clopper_pearson(value, samples)


def coverage(truth: float, draw: Draw) -> float:
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(REPETITIONS):
        value, weights = draw(rng)
        samples = effective_samples(weights.tolist())
        low, high = interval(round(min(1.0, value), 6), round(samples, 6))
        covered += low <= truth <= high
    return covered / REPETITIONS


@pytest.mark.parametrize("truth", [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
def test_uniform_weights_cover_the_true_mass(truth: float) -> None:
    reader = SimulatedReader(truth, tilt=0)

    def draw(rng: np.random.Generator) -> tuple[float, np.ndarray]:
        right, _ = reader.draw(rng, 10)
        return float(right.mean()), np.full(10, 0.1)

    assert coverage(truth, draw) >= 0.93


@pytest.mark.parametrize("tilt", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("limit", [0.5, 0.7, 0.9, 0.99])
def test_length_normalised_weights_cover_their_own_limit(limit: float, tilt: float) -> None:
    reader = reader_with(limit, tilt)

    def draw(rng: np.random.Generator) -> tuple[float, np.ndarray]:
        right, lennorm = reader.draw(rng, 10)
        weights = belief.weights([[value] for value in lennorm])
        return float(weights @ right), weights

    assert reader.limit == pytest.approx(limit, abs=1e-3)
    assert coverage(reader.limit, draw) >= 0.93


def reader_with(limit: float, tilt: float) -> SimulatedReader:
    """The reader whose length-normalised belief converges to `limit`."""
    low, high = 0.01, 0.999
    while high - low > 1e-6:
        middle = (low + high) / 2
        if SimulatedReader(middle, tilt).limit < limit:
            low = middle
        else:
            high = middle
    return SimulatedReader(low, tilt)


def test_differences_cover_the_true_difference() -> None:
    rng = np.random.default_rng(5)
    for before, after in [(0.1, 0.9), (0.5, 0.5), (0.5, 0.99), (0.02, 0.02)]:
        covered = 0
        for _ in range(REPETITIONS):
            p, q = rng.binomial(10, after) / 10, rng.binomial(10, before) / 10
            found = difference(
                ValueInterval(p, *interval(p, 10)), ValueInterval(q, *interval(q, 10))
            )
            covered += found.low <= after - before <= found.high
        assert covered / REPETITIONS >= 0.93


def test_resamples_give_an_interval_only_if_they_differ() -> None:
    """An interval without width would claim that a score is certain."""
    values = [float("nan"), *range(101)]
    assert of_resamples(values) == pytest.approx((2.5, 97.5))
    assert of_resamples([0.5, 0.5 + 1e-12], rounding=1e-9) is None
    assert of_resamples([0.5] * 9) is None
    assert of_resamples([float("nan")]) is None
    assert quantiles(range(101), (0.1, 0.5)) == pytest.approx((10, 50))
