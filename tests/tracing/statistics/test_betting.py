"""Bounds by betting: they hold, they are near, and looking often does not break them."""

from math import log

import numpy as np
import pytest

from hopscope.tracing.statistics.betting import Range, bounds, needed, p_values, upper, wealth


def differences(rows: int, size: int, worse: float, better: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.choice([1.0, -1.0, 0.0], p=[worse, better, 1 - worse - better], size=(rows, size))


def test_a_mean_at_the_limit_is_rarely_rejected() -> None:
    """2,000 samples whose mean is the limit: at most 5 % rejected, with room for 3 deviations."""
    rejected = p_values(differences(2000, 300, 0.07, 0.05), 0.02) <= 0.05
    assert rejected.mean() < 0.05 + 3 * (0.05 * 0.95 / 2000) ** 0.5


def test_a_mean_below_the_limit_is_found() -> None:
    """.03 below 0 with few differing questions; Hoeffding's inequality would find none of them."""
    rejected = p_values(differences(500, 500, 0.02, 0.05), 0.02) <= 0.05
    assert rejected.mean() > 0.9


def test_no_difference_at_all_needs_about_150_questions() -> None:
    """By hand: the binomial test needs (1 - .02)^n ≤ .05, which is 149."""
    assert p_values(np.zeros((1, 140)), 0.02)[0] > 0.05
    assert p_values(np.zeros((1, 175)), 0.02)[0] <= 0.05
    assert 140 < needed(np.zeros(50), 0.02) <= 175


def test_the_upper_bound_is_where_the_p_value_meets_the_level() -> None:
    [row] = differences(1, 400, 0.03, 0.05)
    bound = upper(row)
    assert row.mean() < bound < row.mean() + 0.06
    assert p_values(row[None], bound + 1e-6)[0] <= 0.05 < p_values(row[None], bound - 1e-3)[0]


def test_the_number_needed_is_none_where_the_mean_is_no_better_than_the_limit() -> None:
    assert needed(np.full(20, 0.02), 0.02, most=1000) == 1000
    few, many = (needed(differences(1, 400, 0.03, b)[0], 0.02) for b in (0.08, 0.04))
    assert few < many


def test_wealth_is_worked_by_hand() -> None:
    """One value of 0 in [0, 1] against .5: each stake gains its share, .8, .4, .2, .1 of 1."""
    assert wealth([0.0], 0.5, Range(0, 1)) == pytest.approx(1 + (0.8 + 0.4 + 0.2 + 0.1) / 4)
    assert wealth([0.5], 0.5, Range(0, 1)) == pytest.approx(1)
    assert wealth([], 0.5, Range(0, 1)) == 1


def test_looking_after_every_question_rarely_finds_what_is_not_there() -> None:
    """A repeated t-test would find it in about a third of the samples."""
    broken = 0
    for row in differences(200, 400, 0.07, 0.05, seed=1):
        broken += any(wealth(row[:size], 0.02) >= 20 for size in range(10, 401, 10))
    assert broken / 200 < 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5


def test_bounds_hold_the_mean_and_do_not_depend_on_the_order() -> None:
    [row] = differences(1, 1000, 0.05, 0.10)
    low, high = bounds(row)
    assert low < -0.05 < high < 0.0
    assert bounds(np.sort(row)) == pytest.approx((low, high))
    assert bounds(np.zeros(3))[1] > 0.5, "three questions tell little"


def test_values_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="not in"):
        p_values([[0.5, 2.0]], 0.02)


def test_the_stakes_of_a_small_sample_stay_below_ruin() -> None:
    """With n = 2 the stake by the variance is several times what is allowed."""
    assert p_values([[1.0, 1.0]], 0.9)[0] == 1.0
    assert p_values([[-1.0, -1.0]], 0.9)[0] < 1.0
    assert log(wealth([1.0] * 50, 0.9)) < 0


def test_sums_that_are_a_rounding_error_out_of_range_count_as_its_end() -> None:
    values = [1 + 2**-52, -1 - 2**-52, 0.0]
    assert wealth(values, 0.1) == wealth([1.0, -1.0, 0.0], 0.1)
