"""Whether a sample is like an earlier one that is kept in short."""

import numpy as np
import pytest

from hopscope.tracing.statistics.drift import POINTS, Sketch, compare, sketch

RNG = np.random.default_rng(0)


def test_few_values_are_kept_whole() -> None:
    found = sketch([2.0, 1.0, 2.0, 5.0])
    assert (found.n, found.values, found.shares) == (4, (1, 2, 5), (0.25, 0.75, 1))
    assert found.median == 2


def test_many_values_are_kept_in_short() -> None:
    found = sketch(RNG.normal(size=5000))
    assert len(found.values) <= POINTS + 1
    assert found.shares[-1] == 1
    assert found.median == pytest.approx(0, abs=0.05)


def test_the_same_distribution_is_rarely_said_to_move() -> None:
    alarms = [
        compare(sketch(RNG.normal(size=300)), RNG.normal(size=200).tolist()).p <= 0.05
        for _ in range(300)
    ]
    assert np.mean(alarms) < 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


@pytest.mark.parametrize("moved", [[-1.0] * 30, [7.0] * 30, [0.5] * 30])
def test_values_below_above_and_between_the_earlier_ones_are_found(moved: list[float]) -> None:
    found = compare(sketch([0.0] * 30 + [1.0] * 30), moved)
    assert found.distance >= 0.5
    assert found.p < 0.001
    assert (found.before, found.after, found.n) == (0, moved[0], 30)


def test_a_constant_that_stays_does_not_move() -> None:
    assert compare(sketch([3.0] * 40), [3.0] * 40).p == 1


def test_without_values_there_is_nothing_to_compare() -> None:
    with pytest.raises(ValueError, match="empty"):
        sketch([])
    with pytest.raises(ValueError, match="empty"):
        compare(sketch([1.0]), [])


@pytest.mark.parametrize(
    ("values", "shares"),
    [((1.0, 2.0), (1.0,)), ((2.0, 1.0), (0.5, 1.0)), ((1.0, 2.0), (0.5, 0.4)), ((1.0,), (0.2,))],
)
def test_a_damaged_sketch_is_refused(values: tuple[float, ...], shares: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="a sketch"):
        Sketch(n=3, values=values, shares=shares)
