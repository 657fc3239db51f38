"""Reliability of probabilities: of the answers that get about .7, people should accept 70 %.

Answers are counted in bins by their probability, narrower at the ends, where most of them are. The
expected calibration error is the mean distance between the mean probability of a bin and the share
of right answers in it, weighted by its answers (Naeini et al. 2015, "Obtaining well calibrated
probabilities using Bayesian binning").
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopscope.tracing.statistics.intervals import Interval, quantiles

Floats = NDArray[np.float64]
EDGES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Between bins; a value on an edge belongs to the bin above it."""


class Bin(NamedTuple):
    """The answers with a probability from `low` to `high`."""

    low: float
    high: float
    n: int
    mean: float
    """Their mean probability."""
    right: float
    """The share that people accept."""
    interval: Interval
    """Of `right`: 95 % percentile bootstrap over questions."""


class Reliability(NamedTuple):
    """The bins that have answers, and their error."""

    bins: tuple[Bin, ...]
    error: float
    """Expected calibration error, in [0, 1]."""


def reliability(chances: Floats, right: NDArray[np.bool_], drawn: NDArray[np.intp]) -> Reliability:
    """The reliability of probabilities.

    Args:
        chances: probabilities, (question, system).
        right: people's verdicts, (question, system).
        drawn: the questions of each bootstrap resample, (draw, question).
    """
    places = np.digitize(chances, EDGES)  # (question, system)
    ends = (0.0, *EDGES, 1.0)
    found = []
    for place in np.unique(places):
        inside = places == place
        held, accepted = inside.sum(axis=1), (inside & right).sum(axis=1)  # (question,)
        sampled = held[drawn].sum(axis=1)
        shares = accepted[drawn].sum(axis=1)[sampled > 0] / sampled[sampled > 0]
        found.append(
            Bin(
                ends[place],
                ends[place + 1],
                int(held.sum()),
                float(chances[inside].mean()),
                float(right[inside].mean()),
                quantiles(shares),
            )
        )
    return Reliability(tuple(found), expected_error(found))


def expected_error(bins: Sequence[Bin]) -> float:
    """The mean distance of the bins, weighted by their answers."""
    return sum(each.n * abs(each.mean - each.right) for each in bins) / sum(each.n for each in bins)
