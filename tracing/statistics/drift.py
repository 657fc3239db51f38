"""Whether values still come from the distribution of earlier ones.

The two-sample test of Kolmogorov and Smirnov (Smirnov 1939), by its limiting distribution; for
values with ties its p-values are too large rather than too small. The earlier sample is kept as a
`Sketch`: some of its values, the least among them, and the share of the sample at or below each.
Comparing at these values only makes the p-values larger as well.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator
from scipy.special import kolmogorov

from hopscope.runtime.types import Record

POINTS = 100
"""The most values that a sketch keeps."""
DIGITS = 6
"""Significant digits of what it keeps."""


class Sketch(Record):
    """A sample in short."""

    n: int = Field(ge=1)
    values: tuple[float, ...] = Field(min_length=1)
    """Ascending."""
    shares: tuple[float, ...]
    """The share of the sample at or below each value; the last is 1."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if len(self.values) != len(self.shares):
            raise ValueError("a sketch has not as many shares as values")
        ascending = all(one < other for one, other in pairwise(self.values))
        if not ascending or any(one > other for one, other in pairwise((0.0, *self.shares))):
            raise ValueError("values or shares of a sketch do not ascend")
        if self.shares[-1] != 1:
            raise ValueError("the last share of a sketch is not 1")
        return self

    @property
    def median(self) -> float:
        return self.values[int(np.searchsorted(self.shares, 0.5))]


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def sketch(sample: ArrayLike) -> Sketch:
    """
    Raises:
        ValueError: the sample is empty.
    """
    given = np.asarray(sample, float)
    if not given.size:
        raise ValueError("no sketch of an empty sample")
    values, counts = np.unique([_rounded(each) for each in given], return_counts=True)
    shares = np.cumsum(counts) / counts.sum()
    if len(values) > POINTS:
        kept = np.unique(np.searchsorted(shares, np.linspace(0, 1, POINTS) - 1e-12))
        values, shares = values[kept], shares[kept]
    return Sketch(
        n=len(given), values=tuple(values.tolist()), shares=tuple(np.round(shares, DIGITS).tolist())
    )


class Moved(Record):
    """The comparison of a sample with an earlier one."""

    distance: float
    """The largest difference of both distribution functions at the values of the sketch."""
    p: float
    before: float
    """The earlier median."""
    after: float
    n: int
    """Values in the new sample."""


def compare(before: Sketch, sample: Sequence[float]) -> Moved:
    """
    Raises:
        ValueError: the sample is empty.
    """
    now = np.sort([_rounded(each) for each in sample])
    if not now.size:
        raise ValueError("no comparison with an empty sample")
    upto = np.searchsorted(now, before.values, side="right") / now.size
    below_all = np.searchsorted(now, before.values[0], side="left") / now.size
    distance = float(max(np.abs(upto - before.shares).max(), below_all))
    size = before.n * now.size / (before.n + now.size)
    return Moved(
        distance=distance,
        p=float(kolmogorov(distance * np.sqrt(size))),
        before=before.median,
        after=float(np.median(now)),
        n=int(now.size),
    )
