"""The mean of a score over questions, with its coverage.

Invariants: unmeasured questions are left out and counted, so that a mean never hides missing
values. Shares of 0 and 1 have the interval of Clopper and Pearson (1934), other means that of the
bootstrap over questions (BCa, Efron 1987); values that are all equal have none, because resampling
them has no width.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import PlainSerializer

from hopscope.runtime.types import Measurement
from hopscope.tracing.statistics.intervals import LEVEL, clopper_pearson
from hopscope.tracing.statistics.over_questions import Statistic

RESAMPLES = 9999


def _as_mean(statistic: Statistic) -> dict[str, float | int | str | None]:
    fields = dict(statistic)
    return {"mean": fields.pop("value"), **fields}


MeanScore = Annotated[Statistic, PlainSerializer(_as_mean)]
"""The type of a report's field that holds a mean: its JSON calls the value `mean`."""


def average(
    measurements: Sequence[Measurement], *, binary: bool = False, seed: int = 0
) -> Statistic:
    """The mean of the measured values.

    Args:
        binary: whether the values can only be 0 or 1.
        seed: seed of the bootstrap.
    """
    values = [m.value for m in measurements if m.value is not None]
    total = len(measurements)
    if not values:
        reason = next((m.reason for m in measurements if m.reason), "nothing to average")
        return Statistic(value=None, reason=reason, measured=0, total=total)
    mean = float(np.mean(values))
    low, high, method = None, None, ""
    if binary:
        low, high = clopper_pearson(mean, len(values))
        method = "clopper-pearson"
    elif len(set(values)) > 1:
        low, high = _bootstrap(values, seed)
        method = f"bootstrap(BCa, resamples={RESAMPLES}, seed={seed})"
    return Statistic(
        value=mean, measured=len(values), total=total, low=low, high=high, interval=method
    )


def share(hits: int, of: int, *, estimator: str, missing: str) -> Measurement:
    """`hits` out of `of` with the interval of Clopper and Pearson; if `of` is 0, unmeasured with
    the reason `missing`."""
    if not of:
        return Measurement(value=None, reason=missing, estimator=estimator)
    low, high = clopper_pearson(hits / of, of)
    return Measurement(value=hits / of, n=of, estimator=estimator, low=low, high=high)


def _bootstrap(values: Sequence[float], seed: int) -> tuple[float, float]:
    from scipy.stats import bootstrap  # takes half a second to import

    interval = bootstrap(
        (np.asarray(values, float),),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        batch=1000,
        rng=seed,
    ).confidence_interval
    return float(interval.low), float(interval.high)
