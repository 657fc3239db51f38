"""The file of a linear model over the words of a question."""

import re
from itertools import pairwise
from math import exp
from typing import Literal, Self

from pydantic import Field, model_validator

from hopscope.tracing.learned.files import LearnedFile

WORD = re.compile(r"\w+")


def terms(question: str) -> set[str]:
    """The words and pairs of neighbouring words of a question, in lower case."""
    words = WORD.findall(question.lower())
    return {*words, *(f"{a} {b}" for a, b in pairwise(words))}


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
        known = [self.weights[term] for term in terms(question) if term in self.weights]
        scores = [sum(row) for row in zip(self.intercepts, *known, strict=True)]
        chances = [exp(score - max(scores)) for score in scores]
        best = max(range(len(scores)), key=scores.__getitem__)
        return self.classes[best], chances[best] / sum(chances)
