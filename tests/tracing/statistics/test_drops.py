"""Tests of drops by hand, and the power that they promise."""

import numpy as np
import pytest

from hopscope.tracing.statistics import drops as module
from hopscope.tracing.statistics.drops import Drop, Power, drops, power
from hopscope.tracing.statistics.over_questions import Bootstrap, Column


def column(values: list[float | None], *, binary: bool = False) -> Column:
    measured = np.array([value is not None for value in values], float)
    above = np.array([value or 0.0 for value in values], float)
    return Column(above, measured, measured, np.ones(len(values)), binary=binary)


def dropped(
    one: list[float | None], other: list[float | None], allowed: float, *, binary: bool = False
) -> Drop:
    pair = column(one, binary=binary), column(other, binary=binary)
    return drops([pair], [allowed], Bootstrap())[0]


def test_shares_by_hand() -> None:
    """Five questions lost and one won: the chance of one head or none in six throws is 7/64."""
    found = dropped([1.0] * 6 + [0.0], [0.0] * 5 + [1.0, 1.0], 0.0, binary=True)
    assert found.p == pytest.approx(7 / 64)
    assert found.value == pytest.approx(4 / 7)
    # The other way round: five heads or fewer.
    found = dropped([0.0] * 5 + [1.0, 1.0], [1.0] * 6 + [0.0], 0.0, binary=True)
    assert found.p == pytest.approx(63 / 64)


def test_an_allowed_drop_by_hand() -> None:
    """Each of five questions drops by .3, and .1 is allowed: all signs must be positive, which has
    chance 1/32. If .3 is allowed, every sign gives as large a sum."""
    assert dropped([0.8] * 5, [0.5] * 5, 0.1).p == pytest.approx(1 / 32, abs=0.012)
    assert dropped([0.8] * 5, [0.5] * 5, 0.3).p == 1.0
    assert dropped([0.5] * 5, [0.8] * 5, 0.0).p == 1.0


def test_questions_measured_on_one_side_do_not_count() -> None:
    found = dropped([0.8, 0.8, None, 0.9], [0.5, None, 0.5, 0.9], 0.0)
    assert (found.measured, found.total) == (2, 4)
    assert found.value == pytest.approx(0.15)
    found = dropped([0.8, None], [None, 0.5], 0.0)
    assert (found.value, found.p) == (None, None)
    assert found.reason == "no question that both were measured on"


def promised(one: list[float | None], drop: float, **given: float) -> Power:
    pair = column(one, binary=True), column(one, binary=True)
    return power(*pair, allowed=0.0, drop=drop, level=0.05, **given)  # type: ignore[arg-type]


def test_the_power_by_hand() -> None:
    """All of 20 questions are right. One of them is lost with chance .3; five are found, because
    2^-5 < .05; 20 draws with chance .3 hold five or more with chance .7625."""
    found = promised([1.0] * 20, 0.3)
    assert found.chance.low is not None
    assert found.chance.high is not None
    assert found.chance.low < 0.7625 < found.chance.high
    # 22 draws hold five or more with chance .835.
    assert found.needed is not None
    assert 20 <= found.needed <= 23


def test_the_power_grows_with_questions_and_drops() -> None:
    chances = [promised([1.0] * n, drop).chance.value for n, drop in ((20, 0.2), (40, 0.2))]
    assert chances[0] is not None
    assert chances[1] is not None
    assert chances[0] + 0.2 < chances[1]
    few, many = promised([1.0, 0.0] * 50, 0.3), promised([1.0, 0.0] * 50, 0.02)
    assert few.needed is not None
    assert many.needed is not None
    assert few.needed < 40 < 200 < many.needed


def test_a_number_of_questions_that_nobody_has_is_not_told() -> None:
    pair = column([1.0, 0.0] * 20, binary=True), column([0.0, 1.0] * 20, binary=True)
    found = power(*pair, allowed=0.0, drop=0.001, level=0.05, simulations=20)
    assert found.chance.value is not None
    assert found.needed is None


def test_a_drop_that_cannot_be_has_no_power() -> None:
    found = promised([1.0, 0.0, 0.0, 0.0], 0.3)
    assert (found.chance.value, found.needed) == (None, None)
    assert found.chance.reason == "the mean is only 0.25 above the lowest value"
    assert promised([1.0], 0.3).chance.reason == "fewer than two questions"
    with pytest.raises(ValueError, match="is allowed"):
        promised([1.0, 1.0], 0.0)


def test_many_questions_use_the_normal_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both forms of the simulated test find nearly as many drops."""
    rng = np.random.default_rng(0)
    one = list(rng.random(100))
    other = [each + noise for each, noise in zip(one, rng.normal(0, 0.2, 100), strict=True)]
    pair = column(one), column(other)
    exact = power(*pair, allowed=0.02, drop=0.07, level=0.05).chance.value
    monkeypatch.setattr(module, "NORMAL_FROM", 0)
    normal = power(*pair, allowed=0.02, drop=0.07, level=0.05).chance.value
    assert exact is not None
    assert 0.2 < exact < 0.9
    assert normal == pytest.approx(exact, abs=0.06)
