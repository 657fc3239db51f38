"""Frontiers against shapes drawn by hand, and a difference that is known."""

import numpy as np
import pytest

from hopscope.lab.budget.frontier import Sweep, area, at, compare, cost_of, upper_hull


def sweep(policy: str, costs: object, utilities: object) -> Sweep:
    """One setting, whose retrievals are its costs."""
    cost, utility = np.array([costs], float), np.array([utilities], float)
    return Sweep(policy, ("",), cost, utility, cost)


def test_a_hull_leaves_out_what_a_coin_between_others_beats() -> None:
    assert upper_hull([(0, 0), (1, 0.2), (2, 1), (3, 0.9)]) == [(0, 0), (2, 1)]
    assert upper_hull([(1, 0.5), (1, 0.7)]) == [(1, 0.7)]
    assert upper_hull([(1, 0.9), (5, 0.9 + 1e-15)]) == [(1, 0.9)], "rounding is no gain"


def test_areas_and_values_by_hand() -> None:
    hull = [(0.0, 0.0), (2.0, 1.0)]
    assert area(hull, 0, 4) == pytest.approx((0.5 * 2 + 1 * 2) / 4)
    assert at(hull, 1) == 0.5
    assert cost_of(hull, 0.25) == 0.5
    assert np.isnan(cost_of(hull, 1.5))
    assert area(hull, 2, 2) == 1.0


def test_a_policy_that_knows_beats_one_that_draws() -> None:
    """Half of 200 questions need the retrieval that costs 10; one policy knows which."""
    needy = np.arange(200) % 2
    zero, ten = np.zeros(200), np.full(200, 10.0)
    coin = (np.arange(200) // 2) % 2
    never, native = sweep("never", zero, 1.0 - needy), sweep("native", ten, np.ones(200))
    knows = sweep("knows", 10.0 * needy, np.ones(200))
    draws = sweep("draws", 10.0 * coin, np.maximum(1.0 - needy, coin))
    found = compare(
        [knows, draws], never=never, native=native, reference="knows", resamples=200, seed=1
    )
    own, other = found.frontiers
    assert (found.lowest, found.highest) == pytest.approx((0, 10))
    assert own.area.value == pytest.approx((0.75 * 5 + 1 * 5) / 10)
    assert own.area.difference == 0
    assert other.area.value == pytest.approx(0.75)
    assert other.area.low is not None
    assert other.area.low > 0.05, "the interval of the difference excludes 0"
    assert own.cost_at_utility.value == pytest.approx(5)
    assert other.cost_at_utility.value == pytest.approx(10)


def test_the_same_seed_gives_the_same_intervals() -> None:
    rng = np.random.default_rng(0)
    one = sweep("one", rng.random(50), rng.random(50))
    ends = {
        "never": sweep("never", np.zeros(50), np.zeros(50)),
        "native": sweep("native", np.ones(50), np.ones(50)),
    }
    found = [compare([one], **ends, reference="one", resamples=50, seed=3) for _ in range(2)]
    assert found[0] == found[1]
