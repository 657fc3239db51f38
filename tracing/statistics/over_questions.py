"""Means, ratios and differences over questions; intervals keep a question's runs together.

A *column* has a numerator and a denominator for each question, and its value is the sum of the
numerators over the sum of the denominators: a mean over runs has their values above and their
number below, credit per 1,000 tokens has credit above and thousands of tokens below. A question
with a denominator of 0 was not measured.

Intervals are those of the bootstrap over questions (BCa, Efron 1987): whole questions are drawn,
each with all its runs, and the same ones for all columns. Shares of 0 and 1 with one run for each
question have the interval of Clopper and Pearson (1934) instead, which is exact with few questions.
A column whose questions are all equal has none, because resampling it has no width. Of 10,000
questions and more, intervals and tests are those of the normal distribution
(`tracing.statistics.large_samples`).

Differences of two systems are taken question by question, over the questions measured for both.
They are tested by McNemar's exact test (1947) if both are 0 or 1 on every question, else by
Fisher's randomisation test (1935; Smucker et al. 2007): the chance of a difference at least as
large if each question's sign is random. Unlike the bootstrap it keeps its level with few questions.
p-values of one family are adjusted by Holm (1979).
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hopscope.runtime.types import Record
from hopscope.tracing.statistics import large_samples
from hopscope.tracing.statistics.intervals import LEVEL, Interval, clopper_pearson, quantiles

Floats = NDArray[np.float64]
Counts = NDArray[np.uint16]

BONETT_PRICE = "bonett-price"
RESAMPLES = 2000
BATCH = 10
"""Resamples multiplied at once: with 10,000 questions they fit in a core's cache."""


class Statistic(Record):
    """A number over many runs or questions, with its coverage and its interval."""

    value: float | None
    reason: str | None = None
    """Why `value` is None."""
    measured: int
    """Runs or questions behind the value."""
    total: int
    """All of them, measured or not."""
    low: float | None = None
    """95 % interval."""
    high: float | None = None
    interval: str = ""
    """Its method; empty without an interval."""


class Estimate(Statistic):
    """A statistic over runs: a question may have several."""

    questions: int
    """Questions behind the value."""


class Difference(Statistic):
    """The difference of two systems on the same questions: the first minus the second. Its coverage
    counts questions: those measured for both, of those that both ran on."""

    p: float | None = None
    """Two-sided."""
    adjusted: float | None = None
    """`p` by Holm, over its family."""
    test: str = ""


@dataclass(frozen=True)
class Column:
    """The inputs of a statistic; all columns' arrays are over the same questions."""

    above: Floats
    below: Floats
    measured: Floats
    """The number of measured runs of each question."""
    asked: Floats
    """The number of all runs of each question."""
    _: KW_ONLY
    binary: bool = False
    """Whether every value is 0 or 1."""
    reason: str = "nothing was measured"
    """Why the value is missing, if it is."""

    @property
    def shares(self) -> bool:
        """Whether it is a share of questions: each has at most one run, right or wrong."""
        return self.binary and bool((self.measured <= 1).all())


@dataclass(frozen=True)
class Bootstrap:
    """Draws questions with replacement: the same ones for every statistic."""

    _: KW_ONLY
    resamples: int = RESAMPLES
    seed: int = 0
    _drawn: dict[int, Counts] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.resamples < 1:
            raise ValueError(f"{self.resamples} resamples give no interval: use 1 or more")

    @property
    def method(self) -> str:
        return f"bootstrap over questions(BCa, resamples={self.resamples}, seed={self.seed})"

    @property
    def test(self) -> str:
        return f"randomisation(resamples={self.resamples}, seed={self.seed})"

    def draw(self, above: Floats, below: Floats) -> Floats:
        """The columns' values in each resample, (resample, column); NaN where the denominator is 0.
        Both arguments are (column, question)."""
        columns, questions = above.shape
        values = np.full((self.resamples, columns), np.nan)
        # Most columns are over the same questions.
        distinct: dict[bytes, int] = {}
        which = [distinct.setdefault(row.tobytes(), len(distinct)) for row in below]
        both = np.concatenate([above, below[[which.index(i) for i in range(len(distinct))]]]).T
        counts = self._counts(questions)
        for start in range(0, self.resamples, BATCH):
            sums = counts[start : start + BATCH].astype(float) @ both
            bottom = sums[:, columns:][:, which]
            part = values[start : start + BATCH]
            np.divide(sums[:, :columns], bottom, out=part, where=bottom > 0)
        return values

    def p_values(self, above: Floats, *, one_sided: bool = False) -> list[float]:
        """p-values of the sums of differences, (column, question), if every question's sign is
        random; at least 1/(resamples + 1).

        Args:
            one_sided: only sums as large count, not those as small.
        """
        whole = above.sum(axis=1)
        side: Callable[[Floats], Floats] = np.positive if one_sided else np.abs
        observed = side(whole)
        # Sums that differ only by rounding count as equal.
        least = observed - 1e-9 * np.abs(above).sum(axis=1)
        rng = np.random.default_rng(self.seed)
        as_large = np.zeros(len(above), int)
        for start in range(0, self.resamples, BATCH):
            size = min(BATCH, self.resamples - start)
            turned = rng.integers(0, 2, (size, above.shape[1]), np.int8).astype(float)
            as_large += (side(2 * (turned @ above.T) - whole) >= least).sum(axis=0)
        return [float(p) for p in (as_large + 1) / (self.resamples + 1)]

    def _counts(self, questions: int) -> Counts:
        """The number of times each question was drawn, (resample, question): sums over a resample
        are products with it. Kept for one number of questions at a time."""
        if questions not in self._drawn:
            rng = np.random.default_rng(self.seed)
            counts = np.zeros((self.resamples, questions), np.uint16)
            for start in range(0, self.resamples if questions else 0, BATCH):
                size = min(BATCH, self.resamples - start)
                for place, row in enumerate(rng.integers(0, questions, (size, questions)), start):
                    counts[place] = np.bincount(row, minlength=questions)
            self._drawn.clear()
            self._drawn[questions] = counts
        return self._drawn[questions]


def estimates(columns: Sequence[Column], bootstrap: Bootstrap) -> list[Estimate]:
    """The columns' values with intervals."""
    values, ends = _resampled([(c.above, c.below) for c in columns], bootstrap)
    results = []
    for column, value, interval in zip(columns, values, ends, strict=True):
        method = _method(column.below, bootstrap) if interval else ""
        if column.shares and value is not None:
            interval = clopper_pearson(value, float(column.measured.sum()))
            method = "clopper-pearson"
        low, high = interval or (None, None)
        results.append(
            Estimate(
                value=value,
                reason=column.reason if value is None else None,
                measured=int(column.measured.sum()),
                total=int(column.asked.sum()),
                questions=int((column.measured > 0).sum()),
                low=low,
                high=high,
                interval=method,
            )
        )
    return results


def differences(pairs: Sequence[tuple[Column, Column]], bootstrap: Bootstrap) -> list[Difference]:
    """The first of each pair minus the second, question by question; p-values not adjusted."""
    taken = [_paired(one, other) for one, other in pairs]
    values, ends = _resampled(taken, bootstrap)
    tests = [_test(*pair, below) for pair, (_, below) in zip(pairs, taken, strict=True)]
    drawn = [place for place, test in enumerate(tests) if test == "randomisation"]
    by_place = dict(zip(drawn, _chances([taken[place] for place in drawn], bootstrap), strict=True))
    results = []
    for place, ((one, other), (above, below)) in enumerate(zip(pairs, taken, strict=True)):
        value, measured = values[place], int(below.sum())
        low, high = ends[place] or (None, None)
        method = _method(below, bootstrap) if ends[place] else ""
        p, test = None, ""
        if tests[place] == "mcnemar":
            disagreed = int((above > 0).sum()), int((above < 0).sum())
            p, test = mcnemar(*disagreed), "mcnemar(exact)"
            low, high = bonett_price(*disagreed, measured)
            method = BONETT_PRICE
        elif tests[place] == "randomisation":
            p, test = by_place[place]
        results.append(
            Difference(
                value=value,
                reason="no question that both were measured on" if value is None else None,
                measured=measured,
                total=int(((one.asked > 0) & (other.asked > 0)).sum()),
                low=low,
                high=high,
                interval=method,
                p=p,
                test=test,
            )
        )
    return results


def mcnemar(only_one: int, only_other: int) -> float:
    """Exact two-sided p-value from the numbers of questions that only one system or only the other
    has right; 1 if they agree on all."""
    from scipy.special import bdtr

    disagreed, fewer = only_one + only_other, min(only_one, only_other)
    # scipy.stats.binomtest gives the same, and takes half a second to import.
    return min(1.0, 2 * float(bdtr(fewer, disagreed, 0.5)))


def bonett_price(only_one: int, only_other: int, questions: int) -> Interval:
    """95 % interval of the difference of two shares over the same questions, from the numbers that
    only one system or only the other has right: Wald's interval after adding one question to each
    number (Bonett and Price 2012, eq. 3).

    With 20 to 200 questions it covers .94 or more for all shares and correlations, where the
    bootstrap covers .90 for two systems that have 95 % of 50 questions right.
    """
    from scipy.special import ndtri

    count = questions + 2
    one, other = (only_one + 1) / count, (only_other + 1) / count
    middle, value = one - other, (only_one - only_other) / questions
    half = float(ndtri((1 + LEVEL) / 2)) * sqrt((one + other - middle**2) / count)
    return Interval(max(-1.0, min(value, middle - half)), min(1.0, max(value, middle + half)))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """p-values adjusted for multiple tests: with the threshold .05 the chance of any false alarm is
    at most .05 (Holm 1979). None is not part of the family."""
    family = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(family):
        largest = max(largest, min(1.0, p * (len(family) - rank)))
        adjusted[place] = largest
    return adjusted


def _test(one: Column, other: Column, below: Floats) -> Literal["mcnemar", "randomisation"] | None:
    """The test of their difference; None with too few questions."""
    measured = int(below.sum())
    if measured and one.shares and other.shares:
        return "mcnemar"
    return "randomisation" if measured > 1 else None


def _paired(one: Column, other: Column) -> tuple[Floats, Floats]:
    """Each question's difference, and 1 for each question that has one."""
    both = (one.below > 0) & (other.below > 0)
    first, second = (
        np.divide(c.above, c.below, out=np.zeros_like(c.above), where=both) for c in (one, other)
    )
    return first - second, both.astype(float)


def _method(below: Floats, bootstrap: Bootstrap) -> str:
    return large_samples.NORMAL if large_samples.is_large(below) else bootstrap.method


def _chances(
    pairs: Sequence[tuple[Floats, Floats]], bootstrap: Bootstrap
) -> list[tuple[float, str]]:
    """The p-value of each difference, and its test."""
    if pairs and len(pairs[0][0]) < large_samples.LARGE:
        found = bootstrap.p_values(np.stack([above for above, _ in pairs]))
        return [(p, bootstrap.test) for p in found]
    return [
        (large_samples.p_value(above), large_samples.TEST)
        if large_samples.is_large(below)
        else (bootstrap.p_values(above[None, below > 0])[0], bootstrap.test)
        for above, below in pairs
    ]


def _resampled(
    columns: Sequence[tuple[Floats, Floats]], bootstrap: Bootstrap
) -> tuple[list[float | None], list[Interval | None]]:
    """Values and intervals of (numerators, denominators)."""
    if not columns or len(columns[0][0]) < large_samples.LARGE:
        return _drawn(columns, bootstrap)
    values: list[float | None] = []
    ends: list[Interval | None] = []
    for above, below in columns:
        if large_samples.is_large(below):
            value = float(above.sum() / below.sum())
            values.append(value)
            ends.append(large_samples.interval(value, above, below))
        else:  # few of many questions were measured: only they are drawn
            known = below > 0
            [of], [end] = _drawn([(above[known], below[known])], bootstrap)
            values.append(of)
            ends.append(end)
    return values, ends


def _drawn(
    columns: Sequence[tuple[Floats, Floats]], bootstrap: Bootstrap
) -> tuple[list[float | None], list[Interval | None]]:
    """The same by resampling."""
    if not columns:
        return [], []
    above = np.stack([column[0] for column in columns])  # (column, question)
    below = np.stack([column[1] for column in columns])
    total = below.sum(axis=1)
    points = np.divide(above.sum(axis=1), total, out=np.full(len(total), np.nan), where=total > 0)
    drawn = bootstrap.draw(above, below)
    # Each question's empirical influence on the value, up to a factor.
    influence = np.where(below > 0, above - points[:, None] * below, 0.0)
    values = [float(point) if np.isfinite(point) else None for point in points]
    ends = [
        None if value is None else _bca(value, drawn[:, place], influence[place])
        for place, value in enumerate(values)
    ]
    return values, ends


def _bca(value: float, drawn: Floats, influence: Floats) -> Interval | None:
    """The bias-corrected and accelerated interval; None if resampling changes nothing."""
    from scipy.special import ndtr, ndtri

    kept = drawn[np.isfinite(drawn)]
    spread = float((influence**2).sum())
    scale = max(1.0, abs(value))
    if not len(kept) or np.ptp(kept) <= 1e-12 * scale or spread == 0:
        return None
    # Half of the resamples equal to the value count as below it, as in scipy.
    rank = ((kept < value).sum() + (kept <= value).sum()) / (2 * len(kept))
    if not 0 < rank < 1:
        return None
    bias = ndtri(rank)
    acceleration = float((influence**3).sum()) / (6 * spread**1.5)
    tails = bias + ndtri([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    interval = quantiles(kept, ndtr(bias + tails / (1 - acceleration * tails)))
    return interval if interval.low < interval.high else None
