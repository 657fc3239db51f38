"""The file of a router: what each arm is predicted to score and to cost on a question.

Of each level of texts (`tracing.signals.question_features`) it holds a model: the mean of
extremely randomised trees (Geurts, Ernst, Wehenkel 2006) and of a logistic regression, mapped to a
probability by Platt's scaling (1999) of predictions out of fold. A question takes the richest level
it has.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.literals import whole_number
from hopscope.runtime.types import Record
from hopscope.tracing.learned.files import LearnedFile
from hopscope.tracing.learned.forest import LEAF
from hopscope.tracing.learned.value_file import Bin
from hopscope.tracing.signals.question_features import LEVELS, Level, features, levels, words

Floats = NDArray[np.float64]
SET, WORD, SIGNAL = "set=", "word=", "signal="
"""Beginnings of the names of inputs that are no features of texts."""
RETRIEVALS: Mapping[str, int] = {"none": 0, "one": 1}
"""Retrievals of the arms whose name tells them; a number is its own name."""
EDGE = 1e-4


class Asked(NamedTuple):
    """A question before the first retrieval, with what is known of it."""

    question: str
    set: str = ""
    draft: str | None = None
    reasoning: str | None = None
    signals: Mapping[str, float] = {}

    @property
    def levels(self) -> tuple[Level, ...]:
        return levels(self.draft, self.reasoning)

    def inputs(self, level: Level) -> dict[str, float]:
        """All inputs by name, of the texts up to a level; a missing one is absent or 0."""
        draft = None if level == "question" else self.draft
        reasoning = self.reasoning if level == "reasoning" else None
        return {
            **features(self.question, draft, reasoning),
            **{f"{SIGNAL}{name}": value for name, value in self.signals.items()},
            **{f"{WORD}{word}": 1.0 for word in words(self.question)},
            f"{SET}{self.set}": 1.0,
        }


class ArmTree(Record):
    """A regression tree with a value for each arm at each leaf; see `forest.Tree`."""

    feature: tuple[int, ...] = Field(min_length=1)
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    """By node and arm; empty at inner nodes."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        count = len(self.feature)
        if any(len(each) != count for each in (self.threshold, self.left, self.right, self.values)):
            raise ValueError("the sequences of a tree differ in length")
        for node, feature in enumerate(self.feature):
            children = (self.left[node], self.right[node])
            if feature != LEAF and not all(node < child < count for child in children):
                raise ValueError("a tree has a node whose children do not follow it")
            if feature < LEAF:
                raise ValueError("a tree has a node with no input")
            if feature == LEAF and not self.values[node]:
                raise ValueError("a leaf of a tree has no values")
        return self

    def fits(self, inputs: int, arms: int) -> bool:
        """Whether it reads so many inputs and gives values of so many arms."""
        return all(
            len(values) == arms if feature == LEAF else feature < inputs
            for feature, values in zip(self.feature, self.values, strict=True)
        )

    @cached_property
    def _columns(self) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64], Floats]:
        arms = max(map(len, self.values))
        values = np.array([each or (0.0,) * arms for each in self.values])
        children = np.array([self.left, self.right])
        return np.array(self.feature), np.array(self.threshold), children, values

    def predict(self, inputs: NDArray[np.float32]) -> Floats:
        """(row, arm)"""
        feature, threshold, children, values = self._columns
        node = np.zeros(len(inputs), np.int64)
        going = np.flatnonzero(feature[node] != LEAF)
        while len(going):
            at = node[going]
            right = inputs[going, feature[at]] > threshold[at]
            node[going] = children[right.astype(np.int64), at]
            going = going[feature[node[going]] != LEAF]
        return values[node]


class RouteModel(Record):
    """The predictor of one level."""

    level: Level
    names: tuple[str, ...] = Field(min_length=1)
    """Of the inputs."""
    medians: tuple[float, ...]
    """What replaces an input that a question does not have; 0 for sets and words."""
    scales: tuple[float, ...]
    """The linear part divides the distance from the median by it."""
    trees: tuple[ArmTree, ...] = Field(min_length=1)
    """Their mean is the forest's prediction."""
    weights: tuple[tuple[float, ...], ...]
    """By input and arm."""
    intercepts: tuple[float, ...]
    """By arm."""
    platt: tuple[tuple[float, float], ...]
    """By arm, slope and intercept of the log-odds."""
    gains: tuple[Bin, ...] = ()
    """Predicted gains of the best arm over the cheapest, and realised ones out of fold."""
    costs: tuple[ArmTree, ...] = ()
    """How far costs are from the mean of the set; empty where they do not vary."""

    def matrix(self, asked: Sequence[Asked]) -> Floats:
        """(question, input)"""
        rows = (each.inputs(self.level) for each in asked)
        pairs = list(zip(self.names, self.medians, strict=True))
        return np.array([[row.get(name, median) for name, median in pairs] for row in rows])

    def raw(self, matrix: Floats) -> Floats:
        """Predictions before calibration, (question, arm)."""
        return (self._forest(self.trees, matrix) + self._linear(matrix)) / 2

    def utilities(self, matrix: Floats) -> Floats:
        """Calibrated predictions, (question, arm)."""
        return calibrated(self.raw(matrix), self.platt)

    def surcharges(self, matrix: Floats) -> Floats | float:
        """What costs are predicted to be beyond the mean of the set, (question, arm)."""
        return self._forest(self.costs, matrix) if self.costs else 0.0

    def _linear(self, matrix: Floats) -> Floats:
        scaled = (matrix - np.array(self.medians)) / np.array(self.scales)
        return sigmoid(scaled @ np.array(self.weights) + np.array(self.intercepts))

    def _forest(self, trees: Sequence[ArmTree], matrix: Floats) -> Floats:
        narrow = matrix.astype(np.float32)
        total = trees[0].predict(narrow)
        for tree in trees[1:]:
            total = total + tree.predict(narrow)
        return total / len(trees)


class PricePoint(Record):
    """The router at one price on the training questions, predicted out of fold."""

    price: float
    cost: float
    utility: float


class Route(NamedTuple):
    """A decision, with what it is made of."""

    arm: int
    """Its place among the arms."""
    level: Level
    utilities: tuple[float, ...]
    costs: tuple[float, ...]
    price: float
    gain: float
    """Predicted utility of the best arm that retrieves minus that of the cheapest."""
    low: float | None
    high: float | None


class RouteFile(LearnedFile):
    """A router, for any workflow and reader."""

    kind: Literal["route"] = "route"
    version: Literal[1] = 1
    workflow: str = ""
    reader: str = ""
    arms: tuple[str, ...] = Field(min_length=2)
    """The cheapest first."""
    unit: Literal["steps", "tokens", "seconds", "money"]
    """Of costs."""
    budget: str = ""
    """What the prices were chosen for."""
    price: float = Field(ge=0)
    """The utility that a unit of cost must bring."""
    prices: dict[str, float] = Field(default_factory=dict)
    """By set, where sets have their own."""
    costs: dict[str, dict[str, float]]
    """Mean costs by set and arm; that of all questions under the empty name."""
    frontier: tuple[PricePoint, ...]
    """At all prices, the lowest first."""
    models: tuple[RouteModel, ...] = Field(min_length=1)
    """The poorest level first."""
    always: bool | None = None
    """True if it always takes the dearest arm, because no price keeps its promise."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        count = len(self.arms)
        for model in self.models:
            inputs = len(model.names)
            sized = {len(model.medians), len(model.scales), len(model.weights)} == {inputs}
            if not sized or {len(model.intercepts), len(model.platt)} != {count}:
                raise ValueError(f"the model of {model.level} differs in length from its inputs")
            if any(len(row) != count for row in model.weights) or not all(
                tree.fits(inputs, count) for tree in (*model.trees, *model.costs)
            ):
                raise ValueError(f"the model of {model.level} does not fit its inputs and arms")
            if not all(scale > 0 for scale in model.scales):
                raise ValueError(f"the model of {model.level} has a scale that is not above 0")
        levels = [LEVELS.index(model.level) for model in self.models]
        if levels != sorted(set(levels)):
            raise ValueError("the models are not in the order of question, draft, reasoning")
        if any(set(costs) != set(self.arms) for costs in self.costs.values()) or (
            "" not in self.costs
        ):
            raise ValueError("costs must be those of all arms, and of all questions")
        return self

    @property
    def sets(self) -> tuple[str, ...]:
        return tuple(name for name in self.costs if name)

    @property
    def richest(self) -> Level:
        return self.models[-1].level

    def retrievals(self, arm: int) -> int | None:
        """How many the arm makes at most; None if as many as the workflow wants."""
        name = self.arms[arm]
        return RETRIEVALS.get(name, whole_number(name))

    def price_of(self, set: str) -> float:
        return self.prices.get(set, self.price)

    def model(self, levels: Sequence[Level]) -> RouteModel:
        """The richest of these levels.

        Raises:
            UsageError: the router knows none of them.
        """
        for model in reversed(self.models):
            if model.level in levels:
                return model
        raise UsageError(
            f"the router needs the {self.models[0].level} of a question, and one has only "
            f"{', '.join(levels)}"
        )

    def predict(self, asked: Sequence[Asked]) -> tuple[Floats, Floats]:
        """Utilities and costs, both (question, arm)."""
        utilities = np.zeros((len(asked), len(self.arms)))
        costs = np.array([self._costs(each.set) for each in asked])
        chosen = [self.model(each.levels) for each in asked]
        for model in self.models:
            places = [i for i, each in enumerate(chosen) if each is model]
            if places:
                matrix = model.matrix([asked[place] for place in places])
                utilities[places] = model.utilities(matrix)
                costs[places] = np.maximum(0.0, costs[places] + model.surcharges(matrix))
        return utilities, costs

    def route(self, asked: Asked, *, price: float | None = None) -> Route:
        """The arm of a question.

        Args:
            price: instead of the file's.
        """
        [utilities], [costs] = self.predict([asked])
        paid = self.price_of(asked.set) if price is None else price
        arm = int(self.arms_of(utilities[None], costs[None], np.array([paid]))[0])
        best = 1 + int(np.argmax((utilities - paid * costs)[1:]))
        gain = float(utilities[best] - utilities[0])
        model = self.model(asked.levels)
        scores = [each.score for each in model.gains]
        low, high = (
            float(np.interp(gain, scores, ends)) if scores else None
            for ends in ([b.low for b in model.gains], [b.high for b in model.gains])
        )
        return Route(arm, model.level, tuple(utilities), tuple(costs), paid, gain, low, high)

    def arms_of(self, utilities: Floats, costs: Floats, prices: Floats) -> NDArray[np.int64]:
        """The arms of questions: `choose`, unless it always takes the dearest."""
        if self.always:
            return np.full(len(utilities), len(self.arms) - 1)
        return choose(utilities, costs, prices)

    def _costs(self, set: str) -> list[float]:
        known = self.costs.get(set, self.costs[""])
        return [known[arm] for arm in self.arms]


def choose(utilities: Floats, costs: Floats, prices: Floats) -> NDArray[np.int64]:
    """The arm of highest utility minus price times cost of each question; the cheapest of equals.

    Args:
        prices: one for each question.
    """
    return np.asarray(np.argmax(utilities - prices[:, None] * costs, axis=1))


def sigmoid(value: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(value, -30, 30))))


def log_odds(chance: Floats) -> Floats:
    kept = np.clip(chance, EDGE, 1 - EDGE)
    return np.asarray(np.log(kept / (1 - kept)))


def calibrated(raw: Floats, platt: Sequence[tuple[float, float]]) -> Floats:
    """(question, arm)"""
    slopes, intercepts = np.array(platt).T
    return sigmoid(log_odds(raw) * slopes + intercepts)
