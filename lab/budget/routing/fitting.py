"""Learn a router from outcomes: what each arm scores and costs on a question.

Two members share the prediction: extremely randomised trees, which see interactions of few
features, and a logistic regression, which adds up weak ones. Predictions out of fold serve to
calibrate them and to choose the price, so that neither counts what a member remembers of its own
questions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from hopscope.lab.budget._sklearn import sklearn
from hopscope.lab.budget.outcomes import OutcomeRow, Outcomes
from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.counting import counted
from hopscope.tracing.learned.route_file import (
    SET,
    SIGNAL,
    WORD,
    ArmTree,
    Asked,
    PricePoint,
    RouteFile,
    RouteModel,
    calibrated,
    choose,
    log_odds,
)
from hopscope.tracing.learned.value_file import Bin
from hopscope.tracing.signals.question_features import LEVELS, Level, features, words

Floats = NDArray[np.float64]
LEAST = 30
"""Questions needed to learn from."""
BINS = 10


@dataclass(frozen=True)
class Fitting:
    """Settings of learning."""

    _: KW_ONLY
    levels: tuple[Level, ...] = LEVELS
    """Of texts to learn from; each must be there in `LEAST` rows."""
    trees: int = 120
    leaf: int = 10
    """Least questions in a leaf."""
    share: float = 0.4
    """Of the inputs that a split looks at."""
    strength: float = 0.03
    """Of the logistic regression: the inverse of the penalty on its weights."""
    scale: float = 0.3
    """Its inputs have this standard deviation; words and sets are 0 or 1."""
    words: int = 100
    """Most frequent words of the questions, as inputs where there is no draft."""
    folds: int = 5
    adapting: float = 4.0
    """How much a row to adapt to counts, against the others' 1."""
    prices: int = 40
    """Prices to try, besides 0."""
    seed: int = 0


class Predicted(NamedTuple):
    """Of the training questions, out of fold, by the richest level of each."""

    utilities: Floats
    """(row, arm)"""
    costs: Floats
    """(row, arm)"""


class Learned(NamedTuple):
    file: RouteFile
    predicted: Predicted


def asked(row: OutcomeRow) -> Asked:
    """What a router sees of a row."""
    return Asked(row.question, row.set, row.draft, row.reasoning, row.signals)


def learn(
    outcomes: Outcomes,
    *,
    budgets: Mapping[str, float] | None = None,
    adapt: Outcomes | None = None,
    fitting: Fitting | None = None,
    source: str = "",
) -> Learned:
    """Learn a router.

    Args:
        adapt: a few rows like those to come. They count more than the others, and the price of all
            questions is chosen for them.
        budgets: mean cost of a question, by set; under the empty name that of all questions.
            Without one, the highest price that loses nothing against the best arm is taken.

    Raises:
        UsageError: there are too few rows or arms, or a budget is for an unknown set.
        MissingExtraError: scikit-learn is not installed.
    """
    fitting, budgets = fitting or Fitting(), budgets or {}
    learners = len(outcomes.rows)
    sets = (outcomes if adapt is None else adapt).sets
    if adapt is not None:
        outcomes = joined(outcomes, adapt)
    weights = np.where(np.arange(len(outcomes.rows)) < learners, 1.0, fitting.adapting)
    if len(outcomes.rows) < LEAST:
        raise UsageError(
            f"{counted(len(outcomes.rows), 'row is', 'rows are')} too few to learn from: {LEAST} "
            "are needed"
        )
    if len(outcomes.arms) < 2:
        raise UsageError(f"a router needs two arms or more, and there is only {outcomes.arms[0]}")
    if unknown := set(budgets) - {"", *sets}:
        raise UsageError(
            f"no row is of the set {', '.join(sorted(unknown))}; there are "
            f"{', '.join(filter(None, sets)) or 'no sets'}"
        )
    means = mean_costs(outcomes)
    base = np.array([[means[row.set][arm] for arm in outcomes.arms] for row in outcomes.rows])
    utilities, costs = np.zeros(base.shape), base.copy()
    models = []
    folds = _folds(outcomes, fitting)
    for level in fitting.levels:
        places = [i for i, row in enumerate(outcomes.rows) if level in asked(row).levels]
        if len(places) < LEAST:
            break
        fitted = _fit_level(
            level, outcomes.of(places), base[places], folds[places], weights[places], fitting
        )
        models.append(fitted.model)
        utilities[places], costs[places] = fitted.utilities, base[places] + fitted.surcharges
    found = Predicted(utilities, np.maximum(0.0, costs))
    if adapt is not None:  # prices and figures are for questions like these
        outcomes = outcomes.of(range(learners, len(outcomes.rows)))
        found = Predicted(*(each[learners:] for each in found))
    frontier = [_point(outcomes, found, price) for price in price_grid(outcomes, fitting.prices)]
    price = _price(outcomes, found, frontier, budgets.get(""))
    chosen = _point(outcomes, found, price)
    best = float(outcomes.scores.mean(axis=0).max())
    figures: dict[str, JsonValue] = {
        "source": source,
        "questions": learners,
        "adapted_to": 0 if adapt is None else len(adapt.rows),
        "seed": fitting.seed,
        "utility": round(chosen.utility, 6),
        outcomes.unit: round(chosen.cost, 4),
        "best_arm": round(best, 6),
        "brier": _brier(outcomes, found.utilities),
        "estimator": f"{fitting.folds}-fold cross-validation",
    }
    file = RouteFile(
        arms=outcomes.arms,
        unit=outcomes.unit,
        budget=", ".join(_told(name, value, outcomes.unit) for name, value in budgets.items()),
        price=price,
        prices={
            name: set_price(outcomes, found, name, budget, fitting.prices)
            for name, budget in budgets.items()
            if name
        },
        costs=means,
        frontier=tuple(frontier),
        models=tuple(models),
        learned=figures,
        prompts=outcomes.prompts,
    )
    return Learned(file, found)


def joined(outcomes: Outcomes, others: Outcomes) -> Outcomes:
    """The rows of both.

    Raises:
        UsageError: their arms or units differ.
    """
    if set(outcomes.arms) != set(others.arms) or outcomes.unit != others.unit:
        raise UsageError(
            f"the rows to adapt to are of {', '.join(others.arms)} by {others.unit}, and the "
            f"others of {', '.join(outcomes.arms)} by {outcomes.unit}"
        )
    return outcomes.model_copy(update={"rows": outcomes.rows + others.rows})


def mean_costs(outcomes: Outcomes) -> dict[str, dict[str, float]]:
    """By set and arm; of all questions under the empty name."""
    costs = outcomes.costs
    names = np.array([row.set for row in outcomes.rows])
    groups = {"": np.ones(len(names), bool)} | {n: names == n for n in outcomes.sets if n}
    return {
        name: dict(zip(outcomes.arms, np.round(costs[here].mean(axis=0), 9).tolist(), strict=True))
        for name, here in groups.items()
    }


def price_grid(outcomes: Outcomes, count: int) -> list[float]:
    """From 0 to a price at which only the cheapest arm is taken."""
    costs = outcomes.costs.mean(axis=0)
    steps = [float(each) for each in costs - costs[0] if each > 0]
    if not steps:
        return [0.0]
    return [0.0, *np.geomspace(1e-3 / max(steps), 1.5 / min(steps), count).tolist()]


def set_price(outcomes: Outcomes, found: Predicted, name: str, budget: float, count: int) -> float:
    """The least price at which the questions of a set cost at most the budget."""
    here = np.array([row.set == name for row in outcomes.rows])
    costs = outcomes.costs[here]
    return _within(price_grid(outcomes, count), found, here, costs, budget, name)


def _price(
    outcomes: Outcomes, found: Predicted, frontier: Sequence[PricePoint], budget: float | None
) -> float:
    if budget is not None:
        everywhere = np.ones(len(outcomes.rows), bool)
        prices = [point.price for point in frontier]
        return _within(prices, found, everywhere, outcomes.costs, budget, "")
    best = float(outcomes.scores.mean(axis=0).max())
    as_good = [point for point in frontier if point.utility >= best]
    if not as_good:
        return max(frontier, key=lambda point: point.utility).price
    return max(point.price for point in as_good)


def _within(
    prices: Sequence[float],
    found: Predicted,
    here: NDArray[np.bool_],
    costs: Floats,
    budget: float,
    name: str,
) -> float:
    """The least price within a budget, between those of the grid by bisection.

    Raises:
        UsageError: even the cheapest arm costs more.
    """

    def spent(price: float) -> float:
        paid = np.full(int(here.sum()), price)
        arms = choose(found.utilities[here], found.costs[here], paid)
        return float(costs[np.arange(len(costs)), arms].mean())

    above = -1.0
    for price in prices:
        if spent(price) <= budget + 1e-9:
            break
        above = price
    else:
        where = f" in {name}" if name else ""
        raise UsageError(
            f"a budget of {budget:g} is too small{where}: the least is {spent(prices[-1]):.4g}"
        )
    if above < 0:
        return price
    for _ in range(30):
        middle = (above + price) / 2
        above, price = (above, middle) if spent(middle) <= budget + 1e-9 else (middle, price)
    return price


def _point(outcomes: Outcomes, found: Predicted, price: float) -> PricePoint:
    rows = np.arange(len(outcomes.rows))
    arms = choose(found.utilities, found.costs, np.full(len(rows), price))
    cost, utility = (float(each[rows, arms].mean()) for each in (outcomes.costs, outcomes.scores))
    return PricePoint(price=price, cost=cost, utility=utility)


def _told(name: str, value: float, unit: str) -> str:
    return f"{name}:{unit}={value:g}" if name else f"{unit}={value:g}"


def _brier(outcomes: Outcomes, utilities: Floats) -> float:
    """The mean squared error of the predictions."""
    return round(float(((utilities - outcomes.scores) ** 2).mean()), 6)


def _folds(outcomes: Outcomes, fitting: Fitting) -> NDArray[np.int64]:
    """The fold of each row; those of a set are dealt evenly. Rows of one question are in one fold,
    whatever their sets."""
    rng = np.random.default_rng(fitting.seed)
    first: dict[str, int] = {}
    rows = [first.setdefault(row.question, place) for place, row in enumerate(outcomes.rows)]
    places = np.array([*first.values()])
    names = np.array([outcomes.rows[place].set for place in places])
    found = np.zeros(len(rows), np.int64)
    for name in outcomes.sets:
        here = rng.permutation(places[names == name])
        found[here] = np.arange(len(here)) % fitting.folds
    return found[rows]


class _Level(NamedTuple):
    model: RouteModel
    utilities: Floats
    """Calibrated, out of fold."""
    surcharges: Floats
    """Out of fold."""


def _fit_level(
    level: Level,
    outcomes: Outcomes,
    base: Floats,
    folds: NDArray[np.int64],
    weights: Floats,
    fitting: Fitting,
) -> _Level:
    rows = [asked(row) for row in outcomes.rows]
    names = _inputs(level, rows, fitting)
    table = [row.inputs(level) for row in rows]
    medians = [_median(name, [row[name] for row in table if name in row]) for name in names]
    pairs = list(zip(names, medians, strict=True))
    matrix = np.array([[row.get(name, median) for name, median in pairs] for row in table])
    scores, beyond = outcomes.scores, outcomes.costs - base
    varies = bool(np.abs(beyond).max() > 1e-6)
    blank = RouteModel.model_construct(level=level, names=names, medians=tuple(medians))
    raw, surcharges = np.zeros(scores.shape), np.zeros(scores.shape)
    for fold in range(fitting.folds):
        held = folds == fold
        if not held.any() or held.all():
            continue
        part = _fit_members(blank, matrix[~held], scores[~held], weights[~held], fitting)
        raw[held] = part.raw(matrix[held])
        if varies:
            costs = _forest(matrix[~held], beyond[~held], weights[~held], fitting)
            surcharges[held] = part.model_copy(update={"costs": costs}).surcharges(matrix[held])
    platt = tuple(_platt(raw[:, arm], scores[:, arm], weights) for arm in range(scores.shape[1]))
    utilities = calibrated(raw, platt)
    whole = _fit_members(blank, matrix, scores, weights, fitting)
    model = RouteModel(
        level=level,
        names=names,
        medians=tuple(medians),
        scales=whole.scales,
        trees=whole.trees,
        weights=whole.weights,
        intercepts=whole.intercepts,
        platt=platt,
        gains=_bins(utilities, scores),
        costs=_forest(matrix, beyond, weights, fitting) if varies else (),
    )
    return _Level(model, utilities, surcharges)


def _inputs(level: Level, rows: Sequence[Asked], fitting: Fitting) -> tuple[str, ...]:
    """The names of a level's inputs."""
    one = rows[0]
    draft = None if level == "question" else one.draft
    reasoning = one.reasoning if level == "reasoning" else None
    named = list(features(one.question, draft, reasoning))
    sets = sorted({f"{SET}{row.set}" for row in rows if row.set})
    known = sorted({f"{SIGNAL}{name}" for row in rows for name in row.signals})
    counts: dict[str, int] = {}
    if level == "question":
        for row in rows:
            for word in set(words(row.question)):
                counts[word] = counts.get(word, 0) + 1
    common = sorted(counts, key=lambda word: (-counts[word], word))[: fitting.words]
    signals = known if level != "question" else []
    return (*named, *signals, *(sets if len(sets) > 1 else []), *(WORD + w for w in common))


def _median(name: str, values: Sequence[float]) -> float:
    return 0.0 if name.startswith((SET, WORD)) else float(np.median(values))


def _fit_members(
    blank: RouteModel, matrix: Floats, scores: Floats, weights: Floats, fitting: Fitting
) -> RouteModel:
    """The members on some rows, not calibrated."""
    spread = matrix.std(axis=0)
    binary = [name.startswith((SET, WORD)) for name in blank.names]
    scales = np.where(binary, 1.0, np.where(spread > 0, spread / fitting.scale, 1.0))
    scaled = (matrix - np.array(blank.medians)) / scales
    linear = [_linear(scaled, scores[:, arm], weights, fitting) for arm in range(scores.shape[1])]
    return blank.model_copy(
        update={
            "scales": tuple(scales.tolist()),
            "trees": _forest(matrix, scores, weights, fitting),
            "weights": tuple(tuple(row) for row in np.round([w for w, _ in linear], 7).T.tolist()),
            "intercepts": tuple(each for _, each in linear),
        }
    )


def _linear(
    scaled: Floats, score: Floats, weights: Floats, fitting: Fitting
) -> tuple[Floats, float]:
    """Weights and intercept. A score between 0 and 1 counts as both, in its shares."""
    mean = float(np.average(score, weights=weights))
    if not 0 < mean < 1:
        return np.zeros(scaled.shape[1]), float(log_odds(np.array([mean]))[0])
    shares = np.concatenate([score * weights, (1 - score) * weights])
    taken = shares > 0
    labels = np.repeat([1, 0], len(score))[taken]
    model = sklearn().LogisticRegression(C=fitting.strength, max_iter=500)
    model.fit(np.vstack([scaled, scaled])[taken], labels, sample_weight=shares[taken])
    return model.coef_[0], round(float(model.intercept_[0]), 7)


def _platt(raw: Floats, score: Floats, weights: Floats) -> tuple[float, float]:
    """Slope and intercept of the log-odds, out of fold (Platt 1999); a falling one is not taken."""
    slopes, intercept = _linear(log_odds(raw)[:, None], score, weights, Fitting(strength=1e6))
    slope = float(slopes[0])
    if slope <= 0:
        mean = np.average(score, weights=weights)
        return 0.0, float(log_odds(np.array([mean]))[0])
    return round(slope, 6), round(intercept, 6)


def _bins(utilities: Floats, scores: Floats) -> tuple[Bin, ...]:
    """Predicted gains of the best dearer arm over the cheapest, and the realised ones."""
    rows = np.arange(len(scores))
    best = 1 + np.argmax(utilities[:, 1:], axis=1)
    predicted = utilities[rows, best] - utilities[:, 0]
    realised = scores[rows, best] - scores[:, 0]
    order = np.argsort(predicted, kind="stable")
    found: list[Bin] = []
    for group in np.array_split(order, max(1, min(BINS, len(order) // 20))):
        centre, mean = float(predicted[group].mean()), float(realised[group].mean())
        half = 1.96 * float(realised[group].std(ddof=1)) / len(group) ** 0.5
        if not found or centre > found[-1].score:
            found.append(Bin(score=centre, gain=mean, low=mean - half, high=mean + half))
    return tuple(found)


def _forest(
    matrix: Floats, target: Floats, weights: Floats, fitting: Fitting
) -> tuple[ArmTree, ...]:
    model = sklearn().ExtraTreesRegressor(
        n_estimators=fitting.trees,
        min_samples_leaf=fitting.leaf,
        max_features=fitting.share,
        random_state=fitting.seed,
    )
    model.fit(matrix, target, sample_weight=weights)
    return tuple(_tree(each.tree_) for each in model.estimators_)


def _tree(tree: Any) -> ArmTree:
    leaves = tree.children_left == -1
    values = np.round(tree.value[:, :, 0], 4).tolist()
    return ArmTree.model_construct(
        feature=tuple(np.where(leaves, -1, tree.feature).tolist()),
        threshold=tuple(np.where(leaves, 0.0, np.round(tree.threshold, 6)).tolist()),
        left=tuple(np.where(leaves, 0, tree.children_left).tolist()),
        right=tuple(np.where(leaves, 0, tree.children_right).tolist()),
        values=tuple(
            tuple(value) if leaf else () for value, leaf in zip(values, leaves, strict=True)
        ),
    )
