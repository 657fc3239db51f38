"""Correlations and AUROC over pairs of a score and a truth, resampled by question.

Pairs of one question are dependent, so whole questions are drawn, the same ones for all statistics:
differences are paired. Intervals are the bootstrap's percentiles, corrected for bias (Efron 1981)
and expanded to Student's t for the number of questions (Hesterberg 2015). They are left out below
five questions, and if resampling changes nothing; but a perfect correlation has the interval of
`tracing.statistics.correlation.perfect`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from hopscope.runtime.types import Measurement
from hopscope.tracing.statistics.correlation import FEWEST, PERFECT, ROUNDING, pearson_test, perfect
from hopscope.tracing.statistics.intervals import LEVEL, quantiles

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RESAMPLES = 2000


@dataclass(frozen=True)
class Pairs:
    """Scores and true values, in one order."""

    truth: Sequence[float]
    question: Sequence[int]
    """The question of each pair, counted from 0."""
    seed: int
    """Of the resampling."""
    resamples: int = RESAMPLES

    @property
    def method(self) -> str:
        return f"bias-corrected bootstrap over questions, resamples={self.resamples}"

    def pearson(self, scores: Sequence[float | None]) -> Measurement:
        """Pearson's r of the pairs that have a score."""
        [found], n = self._pearson(scores)
        measured = self._measurement(found, n, "pearson", "a constant series has no correlation")
        if measured.value is None or abs(measured.value) < 1 - ROUNDING:
            return measured
        kept = {q for q, s in zip(self.question, scores, strict=True) if s is not None}
        if len(kept) < FEWEST:
            return measured
        low, high = perfect("pearson", measured.value, len(kept))
        estimator = f"pearson(interval={PERFECT})"
        return measured.model_copy(update={"low": low, "high": high, "estimator": estimator})

    def pearson_above(
        self, scores: Sequence[float | None], others: Sequence[float | None]
    ) -> Measurement:
        """r of the scores minus r of the others, over the pairs that both have."""
        [one, other], n = self._pearson(scores, others)
        name = "pearson difference"
        return self._measurement(one - other, n, name, "one of the series is constant")

    def mean_pearson(self, series: Sequence[Sequence[float | None]]) -> Measurement:
        """The mean of several series' r, over the pairs that all have."""
        found, n = self._pearson(*series)
        name = f"mean pearson of {len(series)}"
        return self._measurement(np.mean(found, axis=0), n, name, "one of the series is constant")

    def test(self, scores: Sequence[float | None]) -> tuple[Measurement, Measurement]:
        """Student's t and p of no correlation; it counts pairs as independent, as the paper's."""
        r = self.pearson(scores)
        reason = r.reason
        if reason is None and r.n < 3:
            reason = "fewer than three pairs"
        if reason is not None or r.value is None:
            missing = Measurement(value=None, reason=reason, n=r.n, estimator="student-t")
            return missing, missing
        t, p = pearson_test(r.value, r.n)
        if not np.isfinite(t):
            infinite = "the correlation is perfect, t is infinite"
            return (
                Measurement(value=None, reason=infinite, n=r.n, estimator="student-t"),
                Measurement(value=p, n=r.n, estimator="student-t"),
            )
        return (
            Measurement(value=t, n=r.n, estimator="student-t"),
            Measurement(value=p, n=r.n, estimator="student-t"),
        )

    def auroc(self, scores: Sequence[float | None]) -> Measurement:
        """AUROC: the share of pairs of a true 1 and a true 0 in which the 1 has the higher score;
        ties count half (Mann and Whitney 1947)."""
        kept = [place for place, score in enumerate(scores) if score is not None]
        score = np.array([scores[place] for place in kept], float)
        truth = np.array([self.truth[place] for place in kept], float)
        questions, which = self._clusters(kept)
        right, wrong = truth == 1, truth == 0
        above = np.sign(score[right][:, None] - score[wrong][None, :]) / 2 + 0.5
        wins = np.zeros((questions, questions))
        np.add.at(wins, (which[right][:, None], which[wrong][None, :]), above)
        rights = np.bincount(which[right], minlength=questions)
        wrongs = np.bincount(which[wrong], minlength=questions)
        counts = self._counts(questions).astype(float)
        top = ((counts @ wins) * counts).sum(axis=1)
        bottom = (counts @ rights) * (counts @ wrongs)
        found = np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom > 0)
        return self._measurement(found, len(kept), "auroc", "only one of the two classes occurs")

    def _pearson(self, *series: Sequence[float | None]) -> tuple[list[Floats], int]:
        """Each series' r, first of all pairs and then of each resample; NaN where there is none.
        Also the number of pairs that all have."""
        kept = [
            place for place in range(len(self.truth)) if all(s[place] is not None for s in series)
        ]
        questions, which = self._clusters(kept)
        counts = self._counts(questions).astype(float)
        truth = np.array([self.truth[place] for place in kept], float)
        found = []
        for scores in series:
            score = np.array([scores[place] for place in kept], float)
            x, y = _centred(score), _centred(truth)
            moments = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y])
            sums = np.zeros((questions, len(moments)))
            np.add.at(sums, which, moments.T)
            found.append(_correlation(counts @ sums))
        return found, len(kept)

    def _clusters(self, kept: Sequence[int]) -> tuple[int, Integers]:
        """The number of questions, measured or not, and the question of each pair."""
        questions = max(self.question, default=-1) + 1
        return questions, np.array([self.question[place] for place in kept], np.int64)

    def _counts(self, questions: int) -> Integers:
        """The number of draws of each question, (1 + resample, question); first, each once."""
        if not questions:
            return np.zeros((1, 0), np.int64)
        rng = np.random.default_rng(self.seed)
        shares = np.full(questions, 1 / questions)
        drawn = rng.multinomial(questions, shares, size=self.resamples)
        return np.concatenate([np.ones((1, questions), np.int64), drawn])

    def _measurement(self, found: Floats, n: int, name: str, missing: str) -> Measurement:
        """From the value of all pairs, followed by the resamples'."""
        value = float(found[0])
        if not np.isfinite(value):
            return Measurement(value=None, reason=missing, n=n, seed=self.seed, estimator=name)
        drawn = found[1:][np.isfinite(found[1:])]
        low = high = None
        questions = max(self.question) + 1
        if questions >= FEWEST and np.ptp(drawn) > 1e-9:
            low, high = quantiles(drawn, _tails(value, drawn, questions))
            name += f"(interval={self.method})"
        return Measurement(value=value, n=n, seed=self.seed, estimator=name, low=low, high=high)


def _tails(value: float, drawn: Floats, questions: int) -> Floats:
    """The quantiles of the resamples at the ends of the interval."""
    # Half of those that equal the value count as below it.
    rank = ((drawn < value).sum() + (drawn <= value).sum()) / (2 * len(drawn))
    least = 1 / (2 * len(drawn))
    bias = ndtri(min(max(rank, least), 1 - least))
    # A resample's spread is too small by n - 1 to n, and the normal's quantile by Student's.
    reach = sqrt(questions / (questions - 1)) * stdtrit(questions - 1, (1 + LEVEL) / 2)
    return np.asarray(ndtr(2 * bias + np.array([-reach, reach])))


def _centred(values: Floats) -> Floats:
    """About their mean, so that squares lose no digits; 0 where they differ by rounding only."""
    if not len(values) or np.ptp(values) <= 1e-12 * np.abs(values).max():
        return np.zeros_like(values)
    return np.asarray(values - values.mean())


def _correlation(sums: Floats) -> Floats:
    """r from rows of Σ1, Σx, Σy, Σx², Σy², Σxy; NaN where a side is constant."""
    count, x, y, xx, yy, xy = sums.T
    n = np.maximum(count, 1)
    spread_x, spread_y = xx - x * x / n, yy - y * y / n
    varied = (spread_x > 1e-12 * xx) & (spread_y > 1e-12 * yy)
    below = np.sqrt(np.where(varied, spread_x * spread_y, 1.0))
    return np.where(varied, np.clip((xy - x * y / n) / below, -1, 1), np.nan)
