"""The threshold of least cost whose risks are within their limits, with a level of confidence.

Learn then Test (Angelopoulos, Bates, Candès, Jordan and Lei 2021, arXiv 2110.01052): the null
hypothesis of a threshold is that one of its risks exceeds its limit. Thresholds are tested in a
fixed sequence, each at the full level, until the first that is not rejected; of those before it,
any may be chosen. The chance that a risk of the chosen one exceeds its limit is at most 1 minus its
level, for every distribution and number of questions, if

- the order of the sequence does not depend on the questions of the calibration. It is that of the
  p-values on the questions that the policy has learned from, the smallest first (Pareto testing,
  Laufer-Goldshtein, Fisch, Barzilay and Jaakkola 2022, arXiv 2210.07913). On them a policy looks
  better than it is, the more so the more it stops. Where only the loss has a limit, the thresholds
  that seem to keep it are therefore in the order of their price, the lowest first;
- p-values are valid. Those of means are by betting (`tracing.statistics.betting`), those of
  quantiles are exact binomial ones. With several risks the largest counts, and each risk keeps its
  own level.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from hopscope.tracing.learned.promise import Measure, Risk, RiskBound
from hopscope.tracing.statistics import betting
from hopscope.tracing.statistics.betting import DIFFERENCES, Range

Floats = NDArray[np.float64]

METHOD = "learn then test, fixed sequence, betting"
MOST = 10_000_000
"""More questions than that are not asked for."""


@dataclass(frozen=True)
class RisksByThreshold:
    """What happens on each question at each threshold."""

    thresholds: tuple[float, ...]
    values: Mapping[Measure, Floats]
    """(threshold, question) by measure; always with loss."""
    costs: Floats  # (threshold, question)
    """What is to be saved."""

    def of(self, questions: NDArray[np.intp]) -> "RisksByThreshold":
        """On some of the questions, in that order."""
        return RisksByThreshold(
            self.thresholds,
            {name: table[:, questions] for name, table in self.values.items()},
            self.costs[:, questions],
        )


class Chosen(NamedTuple):
    place: int | None
    """The threshold; None if no one keeps the limits."""
    p: Floats  # (threshold, risk)
    kept: tuple[int, ...]
    """The places of all thresholds that may be chosen, in the order of the sequence."""


def choose(
    found: RisksByThreshold,
    risks: Sequence[Risk],
    order: Sequence[int],
    caps: Mapping[Measure, float],
) -> Chosen:
    """The threshold of least mean cost.

    Args:
        found: on the questions of the calibration, in random order.
        order: places of thresholds, the first to test first.
        caps: of each measure with a limit of its mean, besides the loss.
    """
    p = p_values(found, risks, caps)
    kept: list[int] = []
    for place in order:
        if any(p[place, i] > _alpha(risk) for i, risk in enumerate(risks)):
            break
        kept.append(place)
    means = found.costs.mean(axis=1)
    return Chosen(min(kept, key=lambda each: float(means[each]), default=None), p, tuple(kept))


def sequence(
    found: RisksByThreshold, risks: Sequence[Risk], caps: Mapping[Measure, float]
) -> tuple[int, ...]:
    """The order to test thresholds in, from questions other than those of the calibration."""
    p = p_values(found, risks, caps) / [_alpha(risk) for risk in risks]
    worst, means = p.max(axis=1), found.costs.mean(axis=1)
    losses = found.values["loss"].mean(axis=1)
    if all(risk.measure == "loss" for risk in risks):
        seems = np.maximum(worst, 1.0)
        return tuple(sorted(range(len(worst)), key=lambda i: (seems[i], found.thresholds[i])))
    return tuple(sorted(range(len(worst)), key=lambda i: (worst[i], losses[i], means[i])))


def p_values(
    found: RisksByThreshold, risks: Sequence[Risk], caps: Mapping[Measure, float]
) -> Floats:
    """(threshold, risk)"""
    return np.column_stack([_p(found.values[r.measure], r, caps) for r in risks])


def _p(table: Floats, risk: Risk, caps: Mapping[Measure, float]) -> Floats:
    if risk.quantile is not None:
        above = (table > risk.limit).sum(axis=1)
        return np.asarray(bdtr(above, table.shape[1], 1 - risk.quantile))
    within = span(risk, caps)
    return betting.p_values(np.minimum(table, within.high), risk.limit, within, level=risk.level)


def span(risk: Risk, caps: Mapping[Measure, float]) -> Range:
    """The range of a measure whose mean has a limit."""
    return DIFFERENCES if risk.measure == "loss" else Range(0.0, caps[risk.measure])


def bound(values: Floats, risk: Risk, caps: Mapping[Measure, float]) -> RiskBound:
    """A risk on the questions, with its upper bound."""
    if risk.quantile is not None:
        ordered = np.sort(values)
        found = float(np.quantile(values, risk.quantile))
        places = np.arange(len(values))  # so many values at most are above ordered[n - 1 - place]
        enough = np.flatnonzero(bdtr(places, len(values), 1 - risk.quantile) <= _alpha(risk))
        upper = float(ordered[len(values) - 1 - enough[-1]]) if len(enough) else None
        return RiskBound(risk=risk, found=found, upper=upper)
    within = span(risk, caps)
    capped = np.minimum(values, within.high)
    return RiskBound(
        risk=risk,
        cap=None if risk.measure == "loss" else within.high,
        found=float(capped.mean()),
        upper=betting.upper(capped, within, level=risk.level),
    )


def needed(
    found: RisksByThreshold,
    risks: Sequence[Risk],
    first: int,
    caps: Mapping[Measure, float],
) -> int | None:
    """The number of questions with which a promise would be kept, if they were like these; None if
    no number would do.

    Args:
        first: the place of the threshold that is tested first, as all depends on it.
    """
    size = max(_needed(found.values[r.measure][first], r, caps) for r in risks)
    return max(size, found.costs.shape[1] + 1) if size < MOST else None


def _needed(values: Floats, risk: Risk, caps: Mapping[Measure, float]) -> int:
    if risk.quantile is None:
        within = span(risk, caps)
        return betting.needed(
            np.minimum(values, within.high), risk.limit, within, level=risk.level, most=MOST
        )
    share = float(np.mean(values > risk.limit))
    sizes = np.unique(np.geomspace(1, MOST, 400).astype(int))
    enough = [n for n in sizes if bdtr(ceil(share * n), n, 1 - risk.quantile) <= _alpha(risk)]
    return int(min(enough, default=MOST))


def _alpha(risk: Risk) -> float:
    return round(1 - risk.level, 12)
