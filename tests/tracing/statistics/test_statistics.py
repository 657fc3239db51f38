"""Means, differences and tests over questions: by hand, and against scipy's bootstrap."""

import numpy as np
import pytest
from scipy.stats import bootstrap as scipy_bootstrap

from hopscope.tracing.statistics.over_questions import (
    Bootstrap,
    Column,
    Estimate,
    bonett_price,
    differences,
    estimates,
    holm,
    mcnemar,
)


def column(*values: float | None, binary: bool = False) -> Column:
    """One run for each question; None was not measured."""
    found = np.array([0.0 if value is None else value for value in values], float)
    measured = np.array([float(value is not None) for value in values])
    return Column(found, measured, measured, np.ones(len(values)), binary=binary, reason="why not")


def estimate(found: Column, **options: int) -> Estimate:
    [only] = estimates([found], Bootstrap(**options))
    return only


def skewed(count: int) -> list[float]:
    return np.random.default_rng(1).exponential(size=count).tolist()


@pytest.mark.parametrize("resamples", [250, 2000])
def test_the_interval_of_a_mean_is_that_of_scipy(resamples: int) -> None:
    """Both draw the same numbers, so nothing but the formulas can differ."""
    values = skewed(30)
    expected = scipy_bootstrap(
        (values,), np.mean, n_resamples=resamples, batch=100, rng=7
    ).confidence_interval
    found = estimate(column(*values), resamples=resamples, seed=7)
    assert found.value == pytest.approx(np.mean(values))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.interval == f"bootstrap over questions(BCa, resamples={resamples}, seed=7)"


def test_what_was_not_measured_is_left_out_and_counted() -> None:
    found = estimate(column(1.0, None, 4.0, None))
    assert (found.value, found.measured, found.total, found.questions) == (2.5, 2, 4, 2)
    none = estimate(column(None, None))
    assert (none.value, none.reason, none.total) == (None, "why not", 2)
    assert none.interval == ""


def test_runs_on_one_question_are_not_independent() -> None:
    """Asking each question twice tells nothing new about other questions."""
    values = np.array(skewed(25))
    twice = Column(2 * values, np.full(25, 2.0), np.full(25, 2.0), np.full(25, 2.0))
    once, again = estimates([column(*values), twice], Bootstrap())
    assert (again.measured, again.questions) == (50, 25)
    assert (again.value, again.low, again.high) == pytest.approx((once.value, once.low, once.high))


def test_a_ratio_is_one_of_sums() -> None:
    """Credit .6 for 3,000 tokens: .2 per 1,000, where the mean of both ratios were .3."""
    ones = np.ones(2)
    found = estimate(Column(np.array([0.5, 0.1]), np.array([1.0, 2.0]), ones, ones))
    assert found.value == pytest.approx(0.2)


def test_shares_have_the_interval_of_clopper_and_pearson() -> None:
    found = estimate(column(1, 1, 1, binary=True))
    assert (found.low, found.high) == (pytest.approx(0.025 ** (1 / 3)), 1.0)
    assert found.interval == "clopper-pearson"
    runs = np.array([2.0, 2.0, 2.0, 2.0])
    several = estimate(Column(np.array([2.0, 1.0, 0.0, 1.0]), runs, runs, runs, binary=True))
    assert several.interval.startswith("bootstrap")


def test_equal_values_and_single_questions_have_no_interval() -> None:
    for found in (estimate(column(0.3, 0.3, 0.3)), estimate(column(0.7)), estimate(column())):
        assert (found.low, found.high, found.interval) == (None, None, "")


def test_differences_are_taken_question_by_question() -> None:
    """.3 - .2, .5 - .1 and nothing of the others: the mean is .25. Taken apart, the systems' means
    differ by .4 - .5 / 3."""
    one, other = column(0.3, 0.5, None, 0.4), column(0.2, 0.1, 0.2, None)
    [found] = differences([(one, other)], Bootstrap(resamples=200))
    assert found.value == pytest.approx(0.25)
    assert (found.measured, found.total) == (2, 4)
    assert (found.low, found.high) == pytest.approx((0.1, 0.4))
    assert found.test == "randomisation(resamples=200, seed=0)"


def test_the_signs_of_differences_are_drawn() -> None:
    """Of the 8 ways to sign .1, .2 and .3 two have a sum as far from 0 as .6; that of -.1, -.1 and
    .2 is 0, and all are as far."""
    zeros = column(0.0, 0.0, 0.0)
    pairs = [(column(0.1, 0.2, 0.3), zeros), (column(-0.1, -0.1, 0.2), zeros), (zeros, zeros)]
    large, none, equal = differences(pairs, Bootstrap(resamples=8000))
    assert large.p == pytest.approx(0.25, abs=0.02)
    assert none.p == 1.0
    assert equal.p == 1.0
    # The smallest that can be told.
    alike = [(column(*[0.5] * 60), column(*[0.1] * 60))]
    assert differences(alike, Bootstrap(resamples=99))[0].p == pytest.approx(0.01)


def test_systems_that_were_asked_other_questions_cannot_be_compared() -> None:
    one, other = column(0.3, None), column(None, 0.1)
    [found] = differences([(one, other)], Bootstrap())
    assert (found.value, found.measured, found.p) == (None, 0, None)
    assert found.reason == "no question that both were measured on"


def test_right_and_wrong_are_tested_by_mcnemar() -> None:
    one, other = column(1, 1, 1, 0, 1, binary=True), column(0, 0, 1, 1, 0, binary=True)
    [found] = differences([(one, other)], Bootstrap())
    assert (found.test, found.p) == ("mcnemar(exact)", pytest.approx(mcnemar(3, 1)))


def test_differences_of_right_and_wrong_have_the_interval_of_bonett_and_price() -> None:
    """By hand: 5 and 2 of 50, so 6/52 and 3/52. Two systems that agree throughout had no interval,
    and of two that are right on 95 % of 50 questions the bootstrap's held the truth in 90 %."""
    one = column(*[1] * 5, *[0] * 2, *[1] * 43, binary=True)
    other = column(*[0] * 5, *[1] * 2, *[1] * 43, binary=True)
    [found] = differences([(one, other)], Bootstrap())
    half = 1.959964 * ((9 / 52 - (3 / 52) ** 2) / 52) ** 0.5
    assert (found.low, found.high) == pytest.approx((3 / 52 - half, 3 / 52 + half), abs=1e-6)
    assert (found.value, found.interval) == (pytest.approx(0.06), "bonett-price")
    [equal] = differences([(one, one)], Bootstrap())
    assert equal.low == pytest.approx(-0.0533, abs=1e-4)
    assert equal.high == pytest.approx(0.0533, abs=1e-4)
    assert bonett_price(2, 0, 2)[1] == 1


def test_mcnemar_by_hand() -> None:
    """8 against 2 of 10: twice (1 + 10 + 45) / 1024."""
    assert mcnemar(8, 2) == pytest.approx(2 * 56 / 1024)
    assert mcnemar(0, 0) == 1.0


def test_holm_by_hand() -> None:
    """.005 · 4, .01 · 3, then .03 · 2, which .04 · 1 must not undercut."""
    assert holm([0.01, 0.04, None, 0.03, 0.005]) == pytest.approx([0.03, 0.06, None, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_randomisation_test_raises_few_false_alarms() -> None:
    """Of 200 comparisons of equal systems over 10 questions, 10 are expected below .05; more than
    22 have a probability of 2 in 10,000."""
    rng = np.random.default_rng(5)
    pairs = [(column(*rng.normal(size=10)), column(*rng.normal(size=10))) for _ in range(200)]
    found = differences(pairs, Bootstrap(resamples=500))
    assert sum(each.p is not None and each.p < 0.05 for each in found) <= 22
