"""Learn a router of least cost that keeps limits of risk with a level of confidence.

As in `guarantee`, one half of the questions teaches and the other is for the choice; both are of
those like the ones to come, where others teach as well. The thresholds
are the router's prices, and the loss is against the dearest arm: what taking it for all questions
scores, minus what the router scores. The order of tests comes from predictions out of fold.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from hopscope.lab.budget.outcomes import UNITS, Outcomes
from hopscope.lab.budget.promises.choosing import RisksByThreshold
from hopscope.lab.budget.promises.following import LEAST
from hopscope.lab.budget.promises.guarantee import (
    Halves,
    check_enough,
    check_measured,
    marks,
    promised,
    split,
)
from hopscope.lab.budget.routing.fitting import Fitting, Predicted, asked
from hopscope.lab.budget.routing.fitting import learn as learn_router
from hopscope.runtime.errors import UsageError
from hopscope.tracing.learned.promise import Measure, Risk, SignalSample
from hopscope.tracing.learned.route_file import SET, WORD, Asked, RouteFile, choose
from hopscope.tracing.statistics.drift import sketch

Floats = NDArray[np.float64]


def learn(
    outcomes: Outcomes,
    risks: Sequence[Risk],
    *,
    adapt: Outcomes | None = None,
    fitting: Fitting | None = None,
    source: str = "",
) -> RouteFile:
    """Learn from outcomes the cheapest router that keeps all limits; one that takes the dearest arm
    for all questions, if no price does. A question that occurs twice counts once.

    Args:
        adapt: rows like those to come, if `outcomes` are others. The promise is by one half of
            them and for questions like them; the other half teaches with `outcomes`, in which their
            questions do not count.

    Raises:
        UsageError: there are too few rows or arms, or a measure with a limit is not in all rows.
        MissingExtraError: scikit-learn is not installed.
    """
    fitting, outcomes = fitting or Fitting(), outcomes.distinct
    target = outcomes if adapt is None else adapt.distinct
    check_measured(risks, ["loss", *measured(target)])
    halves = _halves(target, fitting.seed)
    taught = target.of(halves.learning)
    if adapt is None:
        learned = learn_router(taught, fitting=fitting, source=source)
    else:
        check_enough(len(target.rows))
        known = {row.question for row in target.rows}
        others = [i for i, row in enumerate(outcomes.rows) if row.question not in known]
        learned = learn_router(outcomes.of(others), adapt=taught, fitting=fitting, source=source)
    file = learned.file
    own, rest = (fitted_to(target.of(each), file) for each in halves)
    prices = [point.price for point in file.frontier]
    found = by_price(rest, file.predict([asked(row) for row in rest.rows]), prices)
    place, promise = promised(
        by_price(own, learned.predicted, prices),
        found,
        risks,
        always=always(rest),
        seed=fitting.seed,
        unit=file.unit,
        signals=sketches(file, [asked(row) for row in rest.rows]),
    )
    seen = marks(row.question for row in (*outcomes.rows, *target.rows))
    figures: dict[str, JsonValue] = {
        "estimator": f"{fitting.folds}-fold cross-validation; the promise is by others"
    }
    if place is not None:
        point = file.frontier[place]
        figures |= {"utility": round(point.utility, 6), file.unit: round(point.cost, 4)}
    return file.model_copy(
        update={
            "price": prices[place or 0],
            "always": None if place is not None else True,
            "promise": promise.model_copy(update={"seen": seen}),
            "learned": {**file.learned, **figures},
        }
    )


def _halves(outcomes: Outcomes, seed: int) -> Halves:
    """Places of rows. Those of a question of several sets are in one half."""
    rows: dict[str, list[int]] = {}
    for place, row in enumerate(outcomes.rows):
        rows.setdefault(row.question, []).append(place)
    questions = [*rows.values()]
    dealt = split(len(questions), seed)
    return Halves(*([place for number in half for place in questions[number]] for half in dealt))


def fitted_to(outcomes: Outcomes, file: RouteFile) -> Outcomes:
    """With the arms in the order of the file.

    Raises:
        UsageError: its arms or unit are others.
    """
    if set(outcomes.arms) != set(file.arms) or outcomes.unit != file.unit:
        raise UsageError(
            f"the router chooses among {', '.join(file.arms)} by {file.unit}, and the outcomes are "
            f"of {', '.join(outcomes.arms)} by {outcomes.unit}"
        )
    return outcomes.model_copy(update={"arms": file.arms})


def measured(outcomes: Outcomes) -> dict[Measure, Floats]:
    """The costs that all rows tell of all arms and that can have limits, (row, arm)."""
    found: dict[Measure, Floats] = {}
    for unit in UNITS:
        if unit == "money":
            continue
        rows = [row.costs.get(unit, {}) for row in outcomes.rows]
        if all(arm in row for row in rows for arm in outcomes.arms):
            found[unit] = np.array([[row[arm] for arm in outcomes.arms] for row in rows])
    return found


def by_price(
    outcomes: Outcomes, predicted: Predicted | tuple[Floats, Floats], prices: Sequence[float]
) -> RisksByThreshold:
    """What a router does on each row at each price."""
    utilities, costs = predicted
    arms = [choose(utilities, costs, np.full(len(utilities), price)) for price in prices]
    return of_arms(outcomes, np.array(arms), prices)


def of_arms(
    outcomes: Outcomes, arms: NDArray[np.int64], prices: Sequence[float]
) -> RisksByThreshold:
    """What choices of arms bring and cost.

    Args:
        arms: (price, row)
    """
    rows, scores = np.arange(len(outcomes.rows)), outcomes.scores
    values: dict[Measure, Floats] = {"loss": scores[:, -1] - scores[rows, arms]}
    values |= {name: table[rows, arms] for name, table in measured(outcomes).items()}
    return RisksByThreshold(tuple(prices), values, outcomes.costs[rows, arms])


def always(outcomes: Outcomes) -> RisksByThreshold:
    """The dearest arm for all rows."""
    dearest = len(outcomes.arms) - 1
    return of_arms(outcomes, np.full((1, len(outcomes.rows)), dearest), [0.0])


def signals(file: RouteFile, questions: Sequence[Asked]) -> Mapping[str, list[float]]:
    """What the router sees of questions, and what it predicts for each arm, by name.

    Sets are 0 or 1, and single words are left out.
    """
    found: dict[str, list[float]] = {}
    for each in questions:
        model = file.model(each.levels)
        for name, value in each.inputs(model.level).items():
            if name in model.names and not name.startswith((WORD, SET)):
                found.setdefault(name, []).append(value)
    for name in file.sets:
        found[f"{SET}{name}"] = [float(each.set == name) for each in questions]
    utilities, _ = file.predict(questions)
    for arm, column in zip(file.arms, utilities.T, strict=True):
        found[f"predicted {arm}"] = column.tolist()
    return found


def sketches(file: RouteFile, questions: Sequence[Asked]) -> tuple[SignalSample, ...]:
    return tuple(
        SignalSample(name=name, retrievals=0, sketch=sketch(values))
        for name, values in signals(file, questions).items()
        if len(values) >= LEAST
    )
