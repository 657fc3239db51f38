"""Means over questions and what they cover."""

import warnings

import numpy as np
import pytest

from hopscope.runtime.types import Measurement
from hopscope.tracing.statistics.averages import average, share
from hopscope.tracing.statistics.intervals import clopper_pearson


def measured(*values: float | None) -> list[Measurement]:
    return [Measurement(value=v, reason="no gold" if v is None else None) for v in values]


def test_what_was_not_measured_is_counted_and_not_averaged() -> None:
    found = average(measured(1, None, 0, None), binary=True)
    assert (found.value, found.measured, found.total) == (0.5, 2, 4)
    assert (found.low, found.high) == clopper_pearson(0.5, 2)


def test_nothing_measured_has_the_first_reason() -> None:
    found = average(measured(None, None))
    assert (found.value, found.reason, found.measured, found.total) == (None, "no gold", 0, 2)
    assert average([]).reason == "nothing to average"


def test_equal_values_have_an_interval_only_if_they_are_shares() -> None:
    """The bootstrap of equal values has no width, and scipy warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert average(measured(0.5, 0.5)).low is None
        assert average(measured(1, 1), binary=True).low == pytest.approx(clopper_pearson(1, 2).low)


def test_the_bootstrap_is_seeded_and_covers_the_mean() -> None:
    rng = np.random.default_rng(7)
    samples = [rng.beta(2, 5, size=40) for _ in range(40)]
    found = [average(measured(*sample.tolist()), seed=1) for sample in samples]
    assert found[0] == average(measured(*samples[0].tolist()), seed=1)
    assert sum((f.low or 1) <= 2 / 7 <= (f.high or 0) for f in found) >= 33


def test_a_share_of_nothing_is_unmeasured() -> None:
    found = share(0, 0, estimator="e", missing="nothing wrong")
    assert (found.value, found.reason) == (None, "nothing wrong")
    half = share(2, 4, estimator="e", missing="")
    assert (half.value, half.n) == (0.5, 4)
    assert (half.low, half.high) == clopper_pearson(0.5, 4)
