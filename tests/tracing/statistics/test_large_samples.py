"""Over many questions the normal distribution gives what resampling gives, without resampling."""

import numpy as np
import pytest

from hopscope.tracing.statistics import large_samples, over_questions
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, differences, estimates


def column(above: np.ndarray, below: np.ndarray) -> Column:
    return Column(above, below, below, np.ones(len(above)))


@pytest.fixture(scope="module")
def columns() -> list[Column]:
    """Skewed numbers of most questions, other ones, and those of 300 questions."""
    rng = np.random.default_rng(4)
    count = large_samples.LARGE
    asked = (rng.random(count) < 0.7).astype(float)
    few = (np.arange(count) < 300).astype(float)
    cost = rng.exponential(900, count)
    return [
        column(cost * asked, asked),
        column((cost + rng.normal(0, 900, count) + 5) * asked, asked),
        column(cost * few, few),
    ]


def test_intervals_and_tests_are_those_of_resampling(
    columns: list[Column], monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap = Bootstrap(resamples=500)
    found = estimates(columns[:2], bootstrap)
    [difference] = differences([(columns[0], columns[1])], bootstrap)
    assert {each.interval for each in (*found, difference)} == {large_samples.NORMAL}
    assert difference.test == large_samples.TEST
    monkeypatch.setattr(large_samples, "LARGE", 10**9)
    drawn = estimates(columns[:2], bootstrap)
    [resampled] = differences([(columns[0], columns[1])], bootstrap)
    for one, other in zip([*found, difference], [*drawn, resampled], strict=True):
        assert one.value == pytest.approx(other.value)
        assert one.low is not None
        assert one.high is not None
        width = one.high - one.low
        assert [one.low, one.high] == pytest.approx([other.low, other.high], abs=width / 10)
    assert difference.p == pytest.approx(resampled.p, abs=0.06)


def test_of_few_measured_questions_only_they_are_drawn(columns: list[Column]) -> None:
    bootstrap = Bootstrap(resamples=200)
    [found] = estimates(columns[2:], bootstrap)
    own = column(columns[2].above[:300], columns[2].below[:300])
    [alone] = estimates([own], bootstrap)
    assert (found.value, found.low, found.high) == (alone.value, alone.low, alone.high)
    assert found.interval == bootstrap.method
    [difference] = differences([(columns[0], columns[2])], bootstrap)
    assert difference.test == bootstrap.test
    assert difference.p is not None


def test_equal_questions_have_no_interval_and_nothing_is_no_number() -> None:
    ones, none = np.ones(large_samples.LARGE), np.zeros(large_samples.LARGE)
    bootstrap = Bootstrap(resamples=50)
    equal, nothing = estimates([column(ones, ones), column(none, none)], bootstrap)
    assert (equal.value, equal.low, equal.interval) == (1, None, "")
    assert (nothing.value, nothing.low) == (None, None)
    [same] = differences([(column(ones, ones), column(ones, ones))], bootstrap)
    assert same.p == 1
    assert over_questions.LEVEL == 0.95
