"""The mean of a score over questions, with what it covers.

Invariants: what was not measured is left out and counted, so that a mean never hides how much is
missing. Shares of 0 and 1 have the interval of Clopper and Pearson (1934), other means that of the
bootstrap over questions (BCa, Efron 1987); values that are all equal have none, as resampling
them has no width.
"""

from collections.abc import Sequence

import numpy as np
from scipy.stats import bootstrap

from hopscope.runtime.types import Measurement, Record
from hopscope.tracing.intervals import LEVEL, clopper_pearson

RESAMPLES = 9999


class Average(Record):
    """A mean over questions."""

    mean: float | None
    reason: str | None = None
    """Why `mean` is None."""
    measured: int
    """Questions behind the mean."""
    total: int
    """Questions asked about."""
    low: float | None = None
    """95 % interval."""
    high: float | None = None
    interval: str = ""
    """Which method gave it."""


def average(found: Sequence[Measurement], *, binary: bool = False, seed: int = 0) -> Average:
    """The mean of what was measured.

    Args:
        binary: whether the values are all 0 or 1 by their nature.
        seed: of the bootstrap.
    """
    values = [m.value for m in found if m.value is not None]
    if not values:
        reason = next((m.reason for m in found if m.reason), "nothing to average")
        return Average(mean=None, reason=reason, measured=0, total=len(found))
    mean = float(np.mean(values))
    low, high, method = None, None, ""
    if binary:
        low, high = clopper_pearson(mean, len(values))
        method = "clopper-pearson"
    elif len(set(values)) > 1:
        low, high = _bootstrap(values, seed)
        method = f"bootstrap(BCa, resamples={RESAMPLES}, seed={seed})"
    return Average(
        mean=mean, measured=len(values), total=len(found), low=low, high=high, interval=method
    )


def share(hits: int, of: int, *, estimator: str, missing: str) -> Measurement:
    """`hits` out of `of` with the interval of Clopper and Pearson; unmeasured, for the reason
    `missing`, when there are none to be out of."""
    if not of:
        return Measurement(value=None, reason=missing, estimator=estimator)
    low, high = clopper_pearson(hits / of, of)
    return Measurement(value=hits / of, n=of, estimator=estimator, low=low, high=high)


def _bootstrap(values: Sequence[float], seed: int) -> tuple[float, float]:
    found = bootstrap(
        (np.asarray(values, float),),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        batch=1000,
        rng=seed,
    ).confidence_interval
    return float(found.low), float(found.high)
