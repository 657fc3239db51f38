"""A boosted ensemble of decision trees: rows of numbers in, log-odds out, with their reasons.

Every tree is stored as a complete binary tree; a branch that ends early repeats its value. Many
rows need no walk: a table lists the leaves of all trees that a feature's value excludes, and the
leftmost leaf that no feature excludes is the end of the walk (Lucchese et al. 2015, "QuickScorer").

A feature's contribution is the sum, over its branches, of their changes to the expected log-odds.
With the model's bias the contributions sum to the log-odds (Saabas 2014, "Interpreting random
forests").
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from hopscope.runtime.errors import EntailmentError

Floats = NDArray[np.float64]
Leaves = NDArray[np.uint32]
"""A bit for each leaf of a tree, the leftmost the lowest, so that trees have a depth of up to 5."""
ROWS = 512
"""Rows looked up together; bounds the memory used."""
DIGITS = 12
"""Log-odds are rounded to this many decimals: sums of floats differ in the last ones between
processors and batches."""


class Trees(NamedTuple):
    """Node i of a tree has the children 2i + 1, for values up to its threshold, and 2i + 2."""

    names: tuple[str, ...]
    """Names of the features, in the order of the columns."""
    split: NDArray[np.int16]
    """The feature of an inner node, (tree, node)."""
    threshold: Floats
    """(tree, node); infinite below a branch that ended."""
    value: Floats
    """Expected log-odds at a node, leaves too, (tree, node)."""

    def contributions(self, row: Floats) -> tuple[float, Floats]:
        """The bias, and each feature's contribution to the log-odds of one row, (feature,)."""
        trees, nodes = np.arange(len(self.split)), self.value.shape[1]
        here = np.zeros_like(trees)
        found = np.zeros(len(self.names))
        for _ in range(nodes.bit_length() - 1):
            asked = self.split[trees, here]
            below = 2 * here + 1 + (row[asked] > self.threshold[trees, here])
            np.add.at(found, asked, self.value[trees, below] - self.value[trees, here])
            here = below
        return float(self.value[:, 0].sum()), found


class TreeEnsemble:
    """Trees prepared for many rows."""

    def __init__(self, trees: Trees) -> None:
        count, nodes = trees.value.shape
        self._steps = [_steps(trees, feature) for feature in range(len(trees.names))]
        leaves = nodes // 2 + 1
        self._value = trees.value[:, -leaves:].ravel()
        self._first = np.arange(count) * leaves

    def logits(self, rows: Floats) -> Floats:
        """Log-odds of each row, (row,)."""
        parts = [self._logits(rows[i : i + ROWS]) for i in range(0, len(rows), ROWS)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _logits(self, rows: Floats) -> Floats:
        left = np.full((len(rows), len(self._first)), ~np.uint32(0))
        for values, (bounds, allowed) in zip(rows.T, self._steps, strict=True):
            left &= allowed[np.searchsorted(bounds, values)]
        # The exponent of a power of two is the number of its bit.
        lowest = (left & -left).astype(np.float32).view(np.uint32) >> 23
        found = self._value[lowest - 127 + self._first].sum(axis=1)
        return np.asarray(np.round(found, DIGITS))


class _Steps(NamedTuple):
    """The effect of a feature by its value."""

    bounds: Floats
    """The values above which more leaves are excluded, ascending, (bound,)."""
    allowed: Leaves
    """The leaves left below the first bound, between first and second, ..., (bound + 1, tree).
    """


def _steps(trees: Trees, feature: int) -> _Steps:
    asking = (trees.split == feature) & np.isfinite(trees.threshold)
    bounds = np.unique(trees.threshold[asking])
    allowed = np.full((len(bounds) + 1, len(trees.split)), ~np.uint32(0))
    for tree, node in np.argwhere(asking):
        above = np.searchsorted(bounds, trees.threshold[tree, node]) + 1
        allowed[above:, tree] &= ~_below_left(int(node), trees.value.shape[1])
    return _Steps(bounds, allowed)


def _below_left(node: int, nodes: int) -> np.uint32:
    """The leaves below a node's left child."""
    first = last = 2 * node + 1
    while 2 * first + 1 < nodes:
        first, last = 2 * first + 1, 2 * last + 2
    leaves = nodes // 2
    return np.uint32((1 << (last - leaves + 1)) - (1 << (first - leaves)))


class Model(NamedTuple):
    """What a model file holds."""

    trees: Trees
    curve: Floats
    """Points of the calibration, (before and after, point)."""


def load(path: Path, names: Sequence[str]) -> Model:
    """Read trees and their calibration from a safetensors file.

    Raises:
        EntailmentError: the file does not exist, is damaged, or has other features.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            found = tuple((file.metadata() or {}).get("features", "").split())
            split, threshold, value, curve = map(
                file.get_tensor, ("split", "threshold", "value", "calibration")
            )
    except (OSError, SafetensorError) as error:
        raise EntailmentError(f"{path} is no model that can be read: {error}") from error
    if found != tuple(names):
        raise EntailmentError(f"{path} was trained on other features than are measured here")
    return Model(Trees(found, split, threshold, value), curve)
