"""Sums of regression trees as plain numbers: fitted with scikit-learn, stored in JSON.

Invariant: `predict` equals scikit-learn's prediction; inputs are compared as float32, as there.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from hopscope.runtime.types import Record

LEAF = -1


class Tree(Record):
    """Nodes in the order of their numbers; all sequences have the same length."""

    feature: tuple[int, ...] = Field(min_length=1)
    """Index of the input to compare; -1 at a leaf."""
    threshold: tuple[float, ...]
    """An input at or below it goes left."""
    left: tuple[int, ...]
    right: tuple[int, ...]
    value: tuple[float, ...]

    @model_validator(mode="after")
    def _sound(self) -> Self:
        count = len(self.feature)
        if any(len(each) != count for each in (self.threshold, self.left, self.right, self.value)):
            raise ValueError("the sequences of a tree differ in length")
        for node, feature in enumerate(self.feature):
            children = (self.left[node], self.right[node])
            if feature < LEAF:
                raise ValueError("a tree compares an input that is none")
            if feature != LEAF and not all(node < child < count for child in children):
                raise ValueError("a tree has a node whose children do not follow it")
        return self

    def predict(self, inputs: Sequence[np.float32]) -> float:
        node = 0
        while (feature := self.feature[node]) != LEAF:
            below = inputs[feature] <= self.threshold[node]
            node = self.left[node] if below else self.right[node]
        return self.value[node]


class Forest(Record):
    """`start` plus `rate` times the sum of the trees."""

    start: float
    rate: float = 1.0
    trees: tuple[Tree, ...] = ()

    @property
    def inputs(self) -> int:
        """The least number of inputs that it takes."""
        return 1 + max((max(tree.feature) for tree in self.trees), default=LEAF)

    def predict(self, inputs: Sequence[float]) -> float:
        """The value for one row of inputs."""
        narrow = [np.float32(each) for each in inputs]
        return self.start + self.rate * sum(tree.predict(narrow) for tree in self.trees)
