"""Frontiers of policies (utility against cost), and their comparison.

A policy with a threshold gives one point for each threshold: mean cost and mean utility over the
questions. Between two points lies whatever tossing a coin between them gives, so a policy's
frontier is the upper concave hull of its points together with those of never retrieving and of the
workflow's own stop, which any policy may be mixed with. Areas are means of the frontier over the
costs between those two. Intervals come from the bootstrap over questions, the same ones drawn for
all policies.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hopscope.api.views.grid import Column, Grid
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Record
from hopscope.tracing.statistics.intervals import quantiles

Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""Utilities with a smaller difference count as equal."""


class Point(Record):
    """A policy at one setting."""

    setting: str
    cost: float
    """Mean per question."""
    utility: float


class AgainstReference(Record):
    """A number of one policy against the reference, with a 95 % interval of the difference."""

    value: float | None
    reference: float | None
    difference: float | None
    low: float | None
    high: float | None


class Frontier(Record):
    """A policy on the questions."""

    policy: str
    points: tuple[Point, ...]
    hull: tuple[tuple[float, float], ...]
    """Cost and utility, the cheapest first."""
    area: AgainstReference
    """Mean utility over the range of costs; the reference is the policy compared with."""
    utility_at_cost: AgainstReference
    """At the mean cost of the workflow's own stop."""
    cost_at_utility: AgainstReference
    """Of the utility of the workflow's own stop; None where it is not reached."""


class FrontierComparison(Record):
    """All policies."""

    reference: str
    questions: int
    resamples: int
    seed: int
    lowest: float
    """Mean cost of never retrieving."""
    highest: float
    """Mean cost of the workflow's own stop."""
    frontiers: tuple[Frontier, ...]


@dataclass(frozen=True)
class Sweep:
    """One policy at all its settings."""

    policy: str
    settings: tuple[str, ...]
    costs: Floats  # (setting, question)
    utilities: Floats  # (setting, question)
    stops: Floats  # retrievals, (setting, question)

    @property
    def by_retrievals(self) -> "Sweep":
        """The sweep with the number of retrievals as its cost."""
        return replace(self, costs=self.stops)


def compare(
    sweeps: Sequence[Sweep],
    *,
    never: Sweep,
    native: Sweep,
    reference: str,
    resamples: int = 1000,
    seed: int = 0,
) -> FrontierComparison:
    """The frontier of each policy, and the `reference` policy's against each: areas, utility at
    matched cost and cost at matched utility."""
    questions = native.costs.shape[1]
    draws = np.random.default_rng(seed).multinomial(
        questions, [1 / questions] * questions, resamples
    )
    weights = np.vstack([np.ones((1, questions)), draws]) / questions  # the first is the sample
    ends = {
        end.policy: (weights @ end.costs[0], weights @ end.utilities[0]) for end in (never, native)
    }
    figures = {
        sweep.policy: _figures(sweep, weights, ends[never.policy], ends[native.policy])
        for sweep in sweeps
    }
    low, high = float(ends[never.policy][0][0]), float(ends[native.policy][0][0])
    found = []
    for sweep in sweeps:
        own, theirs = figures[sweep.policy], figures[reference]
        shown = _means(sweep, weights[:1])
        found.append(
            Frontier(
                policy=sweep.policy,
                points=tuple(
                    Point(setting=s, cost=float(c), utility=float(u))
                    for s, c, u in zip(sweep.settings, shown[0][:, 0], shown[1][:, 0], strict=True)
                ),
                hull=own.hull,
                area=_compared(own.area, theirs.area),
                utility_at_cost=_compared(own.utility_at_cost, theirs.utility_at_cost),
                cost_at_utility=_compared(own.cost_at_utility, theirs.cost_at_utility),
            )
        )
    return FrontierComparison(
        reference=reference,
        questions=questions,
        resamples=resamples,
        seed=seed,
        lowest=low,
        highest=high,
        frontiers=tuple(found),
    )


@dataclass(frozen=True)
class _ResampledFrontier:
    """Values in each resample, the sample itself first; NaN where there is no value."""

    hull: tuple[tuple[float, float], ...]
    area: Floats
    utility_at_cost: Floats
    cost_at_utility: Floats


def _means(sweep: Sweep, weights: Floats) -> tuple[Floats, Floats]:
    """Costs and utilities, (setting, resample)."""
    return sweep.costs @ weights.T, sweep.utilities @ weights.T


def _figures(
    sweep: Sweep,
    weights: Floats,
    never: tuple[Floats, Floats],
    native: tuple[Floats, Floats],
) -> _ResampledFrontier:
    costs, utilities = _means(sweep, weights)
    areas, at_cost, at_utility = (np.full(len(weights), np.nan) for _ in range(3))
    shown: tuple[tuple[float, float], ...] = ()
    for r in range(len(weights)):
        low, high = (never[0][r], never[1][r]), (native[0][r], native[1][r])
        points = [*zip(costs[:, r], utilities[:, r], strict=True), low, high]
        hull = upper_hull(points)
        if not r:
            shown = tuple((float(c), float(u)) for c, u in hull)
        areas[r] = area(hull, low[0], high[0])
        at_cost[r] = at(hull, high[0])
        at_utility[r] = cost_of(hull, high[1])
    return _ResampledFrontier(shown, areas, at_cost, at_utility)


def upper_hull(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points of the upper concave hull up to the highest, the cheapest first."""
    found: list[tuple[float, float]] = []
    for cost, utility in sorted(points, key=lambda p: (p[0], -p[1])):
        if found and utility <= found[-1][1] + ROUNDING:
            continue
        while len(found) > 1 and _below(found[-2], found[-1], (cost, utility)):
            found.pop()
        found.append((cost, utility))
    return found


def _below(
    one: tuple[float, float], middle: tuple[float, float], other: tuple[float, float]
) -> bool:
    """Whether the middle one lies on or below the line between the others."""
    rise = (middle[1] - one[1]) * (other[0] - one[0])
    return rise <= (other[1] - one[1]) * (middle[0] - one[0])


def at(hull: Sequence[tuple[float, float]], cost: float) -> float:
    """The utility that a cost buys; beyond the ends that of the end."""
    return float(np.interp(cost, [c for c, _ in hull], [u for _, u in hull]))


def cost_of(hull: Sequence[tuple[float, float]], utility: float) -> float:
    """The least cost of a utility; NaN where it is not reached."""
    if utility > hull[-1][1] + ROUNDING:
        return float("nan")
    return float(np.interp(utility, [u for _, u in hull], [c for c, _ in hull]))


def area(hull: Sequence[tuple[float, float]], low: float, high: float) -> float:
    """Mean utility over the costs from `low` to `high`."""
    if high <= low:
        return at(hull, low)
    inner = [c for c, _ in hull if low < c < high]
    grid = [low, *inner, high]
    heights = [at(hull, cost) for cost in grid]
    return float(np.trapezoid(heights, grid)) / (high - low)


def _compared(own: Floats, reference: Floats) -> AgainstReference:
    """The reference's value minus the policy's, over the resamples in which both have a value."""
    differences = reference - own
    known = differences[1:][~np.isnan(differences[1:])]
    low, high = quantiles(known) if len(known) else (None, None)
    value, other, difference = (
        None if np.isnan(each[0]) else float(each[0]) for each in (own, reference, differences)
    )
    return AgainstReference(value=value, reference=other, difference=difference, low=low, high=high)


def summary(found: FrontierComparison, *, unit: str) -> str:
    """The questions and the range of costs of the frontiers."""
    return (
        f"{counted(found.questions, 'question')}, {unit} from {found.lowest:.4g} (never) to "
        f"{found.highest:.4g} (native)"
    )


def cells(found: FrontierComparison, *, unit: str) -> list[tuple[str, ...]]:
    """Headings, then one row for each policy, the largest area first."""
    rows: list[tuple[str, ...]] = [
        ("policy", "area", f"{found.reference} above it", "at native cost", f"{unit} for native")
    ]
    for each in sorted(found.frontiers, key=lambda each: -(each.area.value or 0.0)):
        matched = each.cost_at_utility.value
        rows.append(
            (
                each.policy,
                f"{each.area.value or 0:.3f}",
                _difference(each.area),
                f"{each.utility_at_cost.value or 0:.3f}",
                "not reached" if matched is None else f"{matched:.1f}",
            )
        )
    return rows


def grid(found: FrontierComparison, *, unit: str) -> Grid:
    """The `cells` for a terminal."""
    headings, *rows = cells(found, unit=unit)
    columns = [Column(headings[0], wraps=14), *(Column(h, 1, right=True) for h in headings[1:])]
    return Grid(columns, rows, stacked=True)


def _difference(found: AgainstReference) -> str:
    if found.difference is None or found.low is None or found.high is None:
        return "-"
    return f"{found.difference:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
