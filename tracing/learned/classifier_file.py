"""Linear models over the words of a question: the file of a classifier, and part of `value`'s."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp
from typing import Literal, Self

from pydantic import Field, model_validator

from hopscope.runtime.types import Record
from hopscope.tracing.learned.files import LearnedFile

WORD = re.compile(r"\w+")


def terms(question: str) -> set[str]:
    """The words and pairs of neighbouring words of a question, in lower case."""
    words = WORD.findall(question.lower())
    return {*words, *(f"{a} {b}" for a, b in pairwise(words))}


Weights = Mapping[str, Sequence[float]]
"""By term, one for each output."""


def scores(question: str, intercepts: Sequence[float], weights: Weights) -> list[float]:
    """The intercepts plus the weights of the question's terms."""
    known = [weights[term] for term in sorted(terms(question)) if term in weights]
    return [sum(row) for row in zip(intercepts, *known, strict=True)]


class WordModel(Record):
    """Numbers predicted from the terms of a question."""

    names: tuple[str, ...]
    intercepts: tuple[float, ...]
    weights: dict[str, tuple[float, ...]]
    """By term, one weight for each name."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if any(len(row) != len(self.names) for row in (self.intercepts, *self.weights.values())):
            raise ValueError("there must be one weight for each name")
        return self

    def predict(self, question: str) -> dict[str, float]:
        return dict(zip(self.names, scores(question, self.intercepts, self.weights), strict=True))


class ClassifierFile(LearnedFile):
    """A linear classifier: a class's score is its intercept plus the weights of the question's
    terms."""

    kind: Literal["classifier"] = "classifier"
    version: Literal[1] = 1
    classes: tuple[int, ...] = Field(min_length=1)
    """Numbers of retrievals that a question needs."""
    intercepts: tuple[float, ...]
    weights: dict[str, tuple[float, ...]]
    """By term, one weight for each class."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        rows = (self.intercepts, *self.weights.values())
        if any(len(row) != len(self.classes) for row in rows):
            raise ValueError("there must be one weight for each class")
        return self

    def classify(self, question: str) -> tuple[int, float]:
        """The most probable class and its probability."""
        found = scores(question, self.intercepts, self.weights)
        chances = [exp(score - max(found)) for score in found]
        best = max(range(len(found)), key=found.__getitem__)
        return self.classes[best], chances[best] / sum(chances)
