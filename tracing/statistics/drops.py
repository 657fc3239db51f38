"""Whether a mean fell by more than is allowed, and the chance to find out.

A *drop* is the baseline minus the candidate, question by question, over the questions measured for
both. The null hypothesis is that the mean drop is at most the allowed one; the test is one-sided.
Shares with no allowed drop have McNemar's exact test (1947): of the questions that only one of both
has right, as many or more were lost if each is lost or won with chance 1/2. Everything else has
Fisher's randomisation test (1935) of the drops less the allowed one: the chance of a sum at least
as large if each question's sign is random. Both are exact if nothing differs but chance and nothing
is allowed, because then the two values of a question may change places. With an allowed drop, the
second is exact for drops that are symmetric about it, and else approximate, with an error that
shrinks as questions grow in number.

The power for a drop is the share of simulated experiments in which the same test finds it. A
simulated experiment draws as many questions, with replacement; lets the two values of each change
places with chance 1/2, which keeps the noise and removes any difference; and lets the candidate's
value fall to the lowest one with the chance that makes the mean drop as large as is wanted. Answers
that break altogether are the common way for a mean to fall, and the hardest to find among the ways
that never raise a value.
"""

from collections.abc import Callable, Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, ndtr, ndtri

from hopscope.runtime.types import Measurement, Record
from hopscope.tracing.statistics.intervals import clopper_pearson
from hopscope.tracing.statistics.over_questions import (
    Bootstrap,
    Column,
    Difference,
    Floats,
    differences,
)

SIMULATIONS = 1000
SIGNS = 1999
"""Random signs of each question in a simulated randomisation test."""
NORMAL_FROM = 1500
"""Questions from which on a simulated randomisation test uses the normal distribution."""
TARGET = 0.8
"""The power for which the number of questions is sought."""
MOST = 20_000
"""The largest number of questions sought."""
CELLS = 2_000_000
"""Questions of all experiments simulated at once."""
ROUNDING = 1e-9
STEPS = 8
"""The most numbers of questions simulated in the search."""


class Drop(Difference):
    """The mean drop; positive if the candidate is worse. Its interval is two-sided, its `p`
    one-sided: of the null hypothesis that the mean drop is at most `allowed`."""

    allowed: float


class Power(Record):
    """The chance to find a drop."""

    drop: float
    """The true mean drop."""
    level: float
    """The largest p-value that counts as found."""
    chance: Measurement
    """The power, with the interval of its simulations."""
    needed: int | None
    """Questions for a power of `TARGET`; None if more than `MOST`, if there is no power, or if it
    was not searched for."""


def drops(
    pairs: Sequence[tuple[Column, Column]], allowed: Sequence[float], bootstrap: Bootstrap
) -> list[Drop]:
    """The drop of each (baseline, candidate); p-values not adjusted. All columns are over the same
    questions, with at most one run for each."""
    fallen = [_fallen(one, other) for one, other in pairs]
    measured = [(one.below > 0) & (other.below > 0) for one, other in pairs]
    exact = [_exact(*pair, most) for pair, most in zip(pairs, allowed, strict=True)]
    drawn = [
        place
        for place, both in enumerate(measured)
        if not exact[place] and np.count_nonzero(both) > 1
    ]
    rest = [np.where(measured[i], _less(fallen[i], allowed[i]), 0.0) for i in drawn]
    chances = bootstrap.p_values(np.stack(rest), one_sided=True) if drawn else []
    by_place = dict(zip(drawn, chances, strict=True))
    found = []
    for place, two_sided in enumerate(differences(pairs, bootstrap)):
        p, test = None, ""
        if exact[place] and measured[place].any():
            p, test = float(_mcnemar(fallen[place][None])[0]), "mcnemar(exact, one-sided)"
        elif place in by_place:
            p, test = by_place[place], f"{bootstrap.test}, one-sided"
        fields = dict(two_sided) | {"p": p, "test": test, "allowed": allowed[place]}
        found.append(Drop(**fields))
    return found


def power(
    baseline: Column,
    candidate: Column,
    *,
    allowed: float,
    drop: float,
    level: float,
    questions: int | None = None,
    search: bool = True,
    seed: int = 0,
    simulations: int = SIMULATIONS,
) -> Power:
    """The power to find a true mean drop with the test of `drops`.

    Args:
        level: the largest p-value that counts as found; with Holm's correction over m tests,
            alpha/m gives a lower bound.
        questions: the number of questions; by default those measured for both.
        search: whether to look for the number of questions that are needed.

    Raises:
        ValueError: the drop is not larger than the allowed one.
    """
    if drop <= allowed:
        raise ValueError(f"a drop of {drop} is allowed: there is nothing to find")
    both = (baseline.below > 0) & (candidate.below > 0)
    values = np.stack([baseline.above[both], candidate.above[both]])  # (side, question)
    estimator = f"simulation(n={simulations})"
    count = values.shape[1]
    room = _room(values)
    if count < 2 or drop > room:
        reason = (
            "fewer than two questions"
            if count < 2
            else f"the mean is only {room:.3g} above the lowest value"
        )
        chance = Measurement(value=None, reason=reason, estimator=estimator)
        return Power(drop=drop, level=level, chance=chance, needed=None)
    exact = _exact(baseline, candidate, allowed)

    def share(size: int) -> float:
        rng = np.random.default_rng([seed, size])
        found = 0
        for start in range(0, simulations, at_once := max(1, CELLS // size)):
            many = min(at_once, simulations - start)
            planted = _planted(values, drop / room, size, many, rng)
            p = _mcnemar(planted) if exact else _randomised(_less(planted, allowed), rng)
            found += int((p <= level).sum())
        return found / simulations

    count = questions or count
    value = share(count)
    low, high = clopper_pearson(value, simulations)
    chance = Measurement(
        value=value, n=simulations, seed=seed, estimator=estimator, low=low, high=high
    )
    needed = _needed(share, count, value, simulations, level) if search else None
    return Power(drop=drop, level=level, chance=chance, needed=needed)


def _fallen(one: Column, other: Column) -> Floats:
    """The drop of each question; 0 unless it is measured for both."""
    both = (one.below > 0) & (other.below > 0)
    before, after = (
        np.divide(c.above, c.below, out=np.zeros_like(c.above), where=both) for c in (one, other)
    )
    return before - after


def _less(fallen: Floats, allowed: float) -> Floats:
    """The drops less the allowed one; what differs by rounding only is equal."""
    rest: Floats = fallen - allowed
    rest[np.abs(rest) < ROUNDING] = 0.0
    return rest


def _exact(one: Column, other: Column, allowed: float) -> bool:
    return one.shares and other.shares and allowed == 0


def _mcnemar(fallen: Floats) -> Floats:
    """One-sided p-values of drops of shares, (experiment, question)."""
    lost, won = (fallen > 0).sum(axis=1), (fallen < 0).sum(axis=1)
    # As many lost or more, which is as many won or fewer; scipy.stats takes half a second to import
    p: Floats = np.where(lost + won > 0, bdtr(won.astype(float), lost + won, 0.5), 1.0)
    return p


def _randomised(fallen: Floats, rng: np.random.Generator) -> Floats:
    """One-sided p-values by randomisation, (experiment, question): the same signs for all."""
    whole = fallen.sum(axis=1)
    if fallen.shape[1] >= NORMAL_FROM:
        spread = np.sqrt((fallen**2).sum(axis=1))
        known: Floats = ndtr(-np.divide(whole, spread, out=np.zeros_like(whole), where=spread > 0))
        return known
    signs = rng.integers(0, 2, (fallen.shape[1], SIGNS), np.int8).astype(np.float32) * 2 - 1
    least = whole - 1e-5 * np.abs(fallen).sum(axis=1)  # sums that differ only by rounding are equal
    as_large = (fallen.astype(np.float32) @ signs >= least[:, None]).sum(axis=1)
    p: Floats = (as_large + 1.0) / (SIGNS + 1)
    return p


def _room(values: Floats) -> float:
    """How far the mean of both sides is above the lowest value, or above 0 if that is lower."""
    return float(values.mean() - min(0.0, values.min())) if values.size else 0.0


def _planted(
    values: Floats, chance: float, questions: int, simulations: int, rng: np.random.Generator
) -> Floats:
    """The drops in simulated experiments, (experiment, question)."""
    shape = (simulations, questions)
    drawn: NDArray[np.intp] = rng.integers(0, values.shape[1], shape)
    side = rng.integers(0, 2, shape, np.int8)
    before, after = values[side, drawn], values[1 - side, drawn]
    broken = rng.random(shape) < chance
    drop: Floats = before - np.where(broken, min(0.0, values.min()), after)
    return drop


def _needed(
    share: Callable[[int], float], count: int, value: float, simulations: int, level: float
) -> int | None:
    """The smallest number of questions found to have a power of `TARGET`.

    The quantile of the power grows about with the root of the number of questions, which leads from
    one number to a better one; then the search halves the distance between too few and enough. A
    power of 0 or 1 counts as half a simulation away from it.
    """
    few, enough = 1, MOST + 1
    for _ in range(STEPS):
        if value >= TARGET:
            enough = min(enough, count)
        else:
            few = max(few, count)
        if 0 <= value - TARGET < 1 / np.sqrt(simulations) or enough - few <= 1 or few >= MOST:
            break
        known = min(max(value, 0.5 / simulations), 1 - 0.5 / simulations)
        least = float(ndtri(1 - level))
        growth = (least + float(ndtri(TARGET))) / max(least + float(ndtri(known)), 0.1 * least)
        count = ceil(count * min(max(growth, 0.2), 5.0) ** 2)
        if not few < count < enough:
            count = (few + enough) // 2 if enough <= MOST else MOST
        value = share(count)
    return enough if enough <= MOST else None
