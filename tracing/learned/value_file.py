"""The file of a learned value of information."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator

from hopscope.runtime.types import Record, digest
from hopscope.tracing.learned.classifier_file import WordModel
from hopscope.tracing.learned.files import LearnedFile
from hopscope.tracing.learned.forest import Forest
from hopscope.tracing.signals.gathering import Stage


class Bin(Record):
    """Held-out questions with similar raw predictions."""

    score: float
    """Their mean raw prediction."""
    gain: float
    """Their mean realised gain, made monotone in the score."""
    low: float
    """95 % interval of that mean."""
    high: float


class GainPrediction(NamedTuple):
    """The predicted gain and cost of the best continuation."""

    gain: float
    low: float
    high: float
    cost: float
    """Tokens."""


class StageModel(Record):
    """The predictor from the signals up to one stage."""

    stage: Stage
    gain: Forest
    cost: Forest
    bins: tuple[Bin, ...] = Field(min_length=1)
    """Ascending by score."""
    doubt: float = Field(default=0.0, ge=0)
    """If gain minus price is closer to 0 than this, the next stage's signals are computed; 0 at the
    last stage."""

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if any(one.score >= two.score for one, two in pairwise(self.bins)):
            raise ValueError("the scores of bins must ascend")
        return self

    def predict(self, inputs: Sequence[float]) -> GainPrediction:
        """From values of all signals in the file's order; those of later stages do not matter."""
        gain, low, high = self._calibrated(self.gain.predict(inputs))
        return GainPrediction(gain, low, high, max(0.0, self.cost.predict(inputs)))

    def _calibrated(self, score: float) -> tuple[float, float, float]:
        scores = [each.score for each in self.bins]
        after = bisect_right(scores, score)
        if after in (0, len(self.bins)):
            end = self.bins[0 if after == 0 else -1]
            return end.gain, end.low, end.high
        one, two = self.bins[after - 1], self.bins[after]
        share = (score - one.score) / (two.score - one.score)
        return (
            one.gain + share * (two.gain - one.gain),
            one.low + share * (two.low - one.low),
            one.high + share * (two.high - one.high),
        )


class Head(Record):
    """The predictors after one number of retrievals."""

    stages: tuple[StageModel, ...] = Field(min_length=1)
    """The cheapest first."""
    medians: dict[str, float]
    """Values for missing signals."""

    def inputs(self, known: Mapping[str, float], names: Sequence[str]) -> list[float]:
        return [known.get(name, self.medians.get(name, 0.0)) for name in names]


class RetrievalPlan(Record):
    """The predictor for one number of retrievals, before the first.

    It compares with no retrieval.
    """

    gain: Forest
    """Added utility."""
    cost: Forest
    """Added tokens."""


class OtherPrice(Record):
    """A second price, for a share of the questions, so that the mean spend meets the budget."""

    share: float = Field(gt=0, lt=1)
    seed: int
    """Of the draws."""
    price: float = Field(ge=0)
    heads: tuple[Head, ...] = Field(min_length=1)

    def takes(self, question: str) -> bool:
        """The same question always has the same price."""
        return Random(digest(str(self.seed), question)).random() < self.share


class ValueFile(LearnedFile):
    """A learned policy of the value of information."""

    kind: Literal["value"] = "value"
    version: Literal[2] = 2
    utility: str
    """The unit of gain: correctness or seper."""
    budget: float
    """The mean tokens per question for which `price` was chosen."""
    price: float = Field(ge=0)
    """The utility that a token must bring."""
    cached: float | None = Field(default=None, ge=0, le=1)
    """What a cached prompt token counts in all tokens of this file; None where it counts as 1."""
    signals: tuple[str, ...] = Field(min_length=1)
    """The inputs of the forests, in order."""
    heads: tuple[Head, ...] = Field(min_length=1)
    """By retrievals done; the last one holds for all after it."""

    words: WordModel | None = None
    """Signals from the words of the question."""
    always: bool | None = None
    """True if it always retrieves, because no price keeps its promise."""
    other: OtherPrice | None = None
    plans: tuple[RetrievalPlan, ...] = ()
    """By number of retrievals, from 1."""

    @model_validator(mode="after")
    def _takes_its_signals(self) -> Self:
        heads = (*self.heads, *(self.other.heads if self.other else ()))
        pairs = [(each.gain, each.cost) for head in heads for each in head.stages]
        pairs += [(plan.gain, plan.cost) for plan in self.plans]
        if any(forest.inputs > len(self.signals) for pair in pairs for forest in pair):
            raise ValueError("a tree compares a signal that the file does not name")
        return self

    def told(self, question: str) -> dict[str, float]:
        """The signals from the words of a question."""
        return {} if self.words is None else self.words.predict(question)

    def drawn(self, question: str) -> Self:
        """With the price of this question, and no other."""
        if self.other is None:
            return self
        its = self.other if self.other.takes(question) else self
        return self.model_copy(update={"price": its.price, "heads": its.heads, "other": None})

    def head(self, retrievals: int) -> Head:
        return self.heads[min(retrievals, len(self.heads) - 1)]
