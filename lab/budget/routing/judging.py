"""Judge a router on outcomes that it has not seen: its accuracy at each mean cost.

It is compared at equal cost with the fixed arms, mixed at random as well as they can be: the upper
hull of the arms' points, which knows the outcomes. The oracle takes of each question's best arms
the cheapest. Intervals are those of the paired bootstrap over questions, drawn within each set.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hopscope.api.views.grid import Column, Grid
from hopscope.lab.budget.outcomes import Outcomes
from hopscope.lab.budget.routing.fitting import asked, price_grid
from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Record
from hopscope.tracing.learned.route_file import RouteFile, choose
from hopscope.tracing.statistics.intervals import quantiles

Floats = NDArray[np.float64]
POOLED = ""
PRICES = 40


class ArmPoint(Record):
    """One arm for all questions, or the oracle."""

    arm: str
    cost: float
    accuracy: float
    low: float
    high: float
    """95 % interval of the accuracy."""


class RoutePoint(Record):
    """The router at one price, or at one mean cost, and the fixed arms at equal cost."""

    price: float | None
    """None for a random mixture of two neighbouring prices."""
    cost: float
    accuracy: float
    low: float
    high: float
    fixed: float
    """Accuracy of the best mixture of fixed arms at this cost."""
    difference: float
    """The router's accuracy minus `fixed`."""
    difference_low: float
    difference_high: float
    """95 % interval of the paired difference."""


class GroupFrontier(Record):
    """The questions of one set, or all."""

    set: str
    """Empty for all questions."""
    questions: int
    arms: tuple[ArmPoint, ...]
    oracle: ArmPoint
    shipped: RoutePoint
    """At the price or prices of the policy's file."""
    router: tuple[RoutePoint, ...]
    """At every price tried, the cheapest first."""
    at: tuple[RoutePoint, ...] = ()
    """At the mean costs that were asked for."""
    within_sets: RoutePoint | None = None
    """Of all questions: `at`, or else `shipped`, against mixtures of equal cost in each set."""


class RouteFrontier(Record):
    """A router on outcomes."""

    policy: str
    unit: str
    questions: int
    left_out: int
    """Rows that lack an arm."""
    costs_from: dict[str, str]
    """By arm, where its costs come from, if not from the rows."""
    levels: dict[str, int]
    """Questions by the richest level of texts that was used."""
    resamples: int
    seed: int
    sets: tuple[GroupFrontier, ...]
    pooled: GroupFrontier


def judge(
    outcomes: Outcomes,
    file: RouteFile,
    *,
    policy: str = "route",
    at: Mapping[str, float] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> RouteFrontier:
    """The frontier of a router by set and of all questions.

    Args:
        outcomes: with the arms and the unit of the file.
        at: mean costs by set at which to compare; under the empty name of all questions.

    Raises:
        UsageError: the arms or units differ, or a set in `at` has no row.
    """
    if set(outcomes.arms) != set(file.arms) or outcomes.unit != file.unit:
        raise UsageError(
            f"the router chooses among {', '.join(file.arms)} by {file.unit}, and the outcomes are "
            f"of {', '.join(outcomes.arms)} by {outcomes.unit}"
        )
    outcomes = outcomes.model_copy(update={"arms": file.arms})
    questions = [asked(row) for row in outcomes.rows]
    utilities, costs = file.predict(questions)
    levels = [file.model(each.levels).level for each in questions]
    return compare(
        outcomes,
        utilities,
        costs,
        shipped=[file.price_of(row.set) for row in outcomes.rows],
        always=bool(file.always),
        policy=policy,
        levels={level: levels.count(level) for level in dict.fromkeys(levels)},
        at=at,
        resamples=resamples,
        seed=seed,
    )


def compare(
    outcomes: Outcomes,
    utilities: Floats,
    costs: Floats,
    *,
    shipped: Sequence[float],
    always: bool = False,
    policy: str = "route",
    levels: Mapping[str, int] | None = None,
    at: Mapping[str, float] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> RouteFrontier:
    """The frontier of predictions.

    Args:
        utilities: predicted, (question, arm), as are `costs`.
        shipped: the price of each question.
        always: at it, the dearest arm is taken in any case.
        levels: questions by the level of texts that was used.

    Raises:
        UsageError: a set in `at` has no row.
    """
    at = at or {}
    if unknown := set(at) - {POOLED, *outcomes.sets}:
        raise UsageError(f"no row is of the set {', '.join(sorted(unknown))}")
    names = np.array([row.set for row in outcomes.rows])
    prices = price_grid(outcomes, PRICES)
    paid = np.vstack([np.array(shipped), *(np.full(len(names), price) for price in prices)])
    chosen = np.array([choose(utilities, costs, each) for each in paid])  # (price, question)
    if always:
        chosen[0] = len(outcomes.arms) - 1
    weights = _weights(names, resamples, seed)
    given = _Given(outcomes, chosen, [None, *prices], weights)
    groups: list[GroupFrontier] = []
    inner: list[tuple[Floats, Floats, Floats, float]] = []
    for name in outcomes.sets:
        made = _Group(given, names == name)
        groups.append(made.frontier(name, at.get(name)))
        cost, accuracy = made.at(at[name]) if name in at else made.curve(0)
        inner.append((cost, accuracy, made.fixed(cost), made.share))
    pooled = _Group(given, np.ones(len(names), bool))
    whole = pooled.frontier(POOLED, at.get(POOLED))
    if len(groups) > 1:
        shares = np.array([each[3] for each in inner])[:, None]
        cost, accuracy, fixed = (
            np.asarray((np.array([each[place] for each in inner]) * shares).sum(axis=0))
            for place in range(3)
        )
        whole = whole.model_copy(update={"within_sets": _point(None, cost, accuracy, fixed)})
    return RouteFrontier(
        policy=policy,
        unit=outcomes.unit,
        questions=len(names),
        left_out=outcomes.left_out,
        costs_from=outcomes.assumed,
        levels=dict(levels or {}),
        resamples=resamples,
        seed=seed,
        sets=tuple(groups),
        pooled=whole,
    )


def _weights(names: NDArray[np.str_], resamples: int, seed: int) -> Floats:
    """How often each question is drawn, (resample, question); the first is the sample itself."""
    rng = np.random.default_rng(seed)
    found = np.ones((resamples + 1, len(names)))
    for name in dict.fromkeys(names.tolist()):
        here = names == name
        count = int(here.sum())
        found[1:, here] = rng.multinomial(count, [1 / count] * count, resamples)
    return found


class _Given:
    """What all groups share."""

    def __init__(
        self,
        outcomes: Outcomes,
        chosen: NDArray[np.int64],
        prices: Sequence[float | None],
        weights: Floats,
    ) -> None:
        self.arms, self.prices, self.weights = outcomes.arms, prices, weights
        self.scores, self.costs = outcomes.scores, outcomes.costs
        rows = np.arange(len(self.scores))
        self.won = self.scores[rows, chosen]  # (price, question)
        self.spent = self.costs[rows, chosen]
        highest = self.scores == self.scores.max(axis=1, keepdims=True)
        best = np.argmin(np.where(highest, self.costs, np.inf), axis=1)
        self.oracle = self.costs[rows, best], self.scores[rows, best]


class _Group:
    """Means of the resamples over some questions."""

    def __init__(self, given: _Given, here: NDArray[np.bool_]) -> None:
        self._given, self._here = given, here
        self.share = float(here.mean())
        count = int(here.sum())
        self._weights = given.weights[:, here] / count
        self._arm_costs = self._weights @ given.costs[here]  # (resample, arm)
        self._arm_scores = self._weights @ given.scores[here]
        self._costs = self._weights @ given.spent[:, here].T  # (resample, price)
        self._scores = self._weights @ given.won[:, here].T
        self.count = count

    def frontier(self, name: str, at: float | None) -> GroupFrontier:
        given = self._given
        places = sorted(range(1, len(given.prices)), key=lambda place: self._costs[0, place])
        return GroupFrontier(
            set=name,
            questions=self.count,
            arms=tuple(
                _arm(arm, self._arm_costs[:, place], self._arm_scores[:, place])
                for place, arm in enumerate(given.arms)
            ),
            oracle=_arm("oracle", *(self._weights @ each[self._here] for each in given.oracle)),
            shipped=self._told(0),
            router=tuple(self._told(place) for place in places),
            at=() if at is None else (self._at(at),),
        )

    def curve(self, place: int) -> tuple[Floats, Floats]:
        """Cost and accuracy at a price, by resample."""
        return self._costs[:, place], self._scores[:, place]

    def at(self, cost: float) -> tuple[Floats, Floats]:
        """Cost and accuracy where the mean cost is this one, by resample: two neighbouring prices
        mixed at random; beyond the ends, that of the end."""
        found = np.zeros((len(self._weights), 2))
        for row, (costs, scores) in enumerate(
            zip(self._costs[:, 1:], self._scores[:, 1:], strict=True)
        ):
            order = np.argsort(costs, kind="stable")
            reached = min(max(cost, costs[order[0]]), costs[order[-1]])
            found[row] = reached, np.interp(cost, costs[order], scores[order])
        return found[:, 0], found[:, 1]

    def fixed(self, cost: Floats) -> Floats:
        """Accuracy of the best mixture of fixed arms at a cost, by resample."""
        costs, scores = self._arm_costs, self._arm_scores
        found: Floats = scores[np.arange(len(cost)), np.argmin(costs, axis=1)]
        for one in range(costs.shape[1]):
            found = np.where(costs[:, one] <= cost, np.maximum(found, scores[:, one]), found)
            for other in range(costs.shape[1]):
                low, high = costs[:, one], costs[:, other]
                between = (low < cost) & (cost < high)
                share = (cost - low) / np.where(between, high - low, 1.0)
                mixed = scores[:, one] + share * (scores[:, other] - scores[:, one])
                found = np.where(between, np.maximum(found, mixed), found)
        return np.asarray(found)

    def _told(self, place: int) -> RoutePoint:
        cost, accuracy = self.curve(place)
        return _point(self._given.prices[place], cost, accuracy, self.fixed(cost))

    def _at(self, cost: float) -> RoutePoint:
        reached, accuracy = self.at(cost)
        return _point(None, reached, accuracy, self.fixed(reached))


def _arm(arm: str, costs: Floats, scores: Floats) -> ArmPoint:
    low, high = quantiles(scores[1:])
    return ArmPoint(arm=arm, cost=float(costs[0]), accuracy=float(scores[0]), low=low, high=high)


def _point(price: float | None, cost: Floats, accuracy: Floats, fixed: Floats) -> RoutePoint:
    low, high = quantiles(accuracy[1:])
    beyond = accuracy - fixed
    below, above = quantiles(beyond[1:])
    return RoutePoint(
        price=price,
        cost=float(cost[0]),
        accuracy=float(accuracy[0]),
        low=low,
        high=high,
        fixed=float(fixed[0]),
        difference=float(beyond[0]),
        difference_low=below,
        difference_high=above,
    )


def grid(found: RouteFrontier) -> Grid:
    """A row for each set, and one for all questions."""
    columns = [
        Column("set", wraps=16),
        Column("questions", 1, right=True),
        *(Column(arm.arm, 1, right=True) for arm in found.pooled.arms),
        Column("oracle", 1, right=True),
        Column("router", 1, right=True),
        Column("above fixed arms at its cost", 1, right=True),
    ]
    rows = []
    for each in (*found.sets, *([found.pooled] if len(found.sets) > 1 else [])):
        shown = each.at[0] if each.at else each.shipped
        rows.append(
            (
                each.set or "all",
                str(each.questions),
                *(f"{arm.accuracy:.3f}@{arm.cost:.2f}" for arm in (*each.arms, each.oracle)),
                f"{shown.accuracy:.3f}@{shown.cost:.2f}",
                _difference(shown),
            )
        )
    return Grid(columns, rows, stacked=True)


def _difference(point: RoutePoint) -> str:
    ends = f"[{point.difference_low:+.3f}, {point.difference_high:+.3f}]"
    return f"{point.difference:+.3f} {ends}"


def summary(found: RouteFrontier) -> list[str]:
    """What the table means."""
    lines = [f"{counted(found.questions, 'question')}: accuracy@{found.unit}, 95 % intervals"]
    if found.left_out:
        lines.append(f"{counted(found.left_out, 'row lacks', 'rows lack')} an arm: left out")
    lines += [f"the {found.unit} of {arm} are {text}" for arm, text in found.costs_from.items()]
    inner = found.pooled.within_sets
    if inner is not None:
        lines.append(f"with equal cost in each set: {_difference(inner)}")
    return lines
