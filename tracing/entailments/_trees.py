"""A boosted ensemble of decision trees: rows of numbers in, log-odds out, with their reasons.

Every tree is laid out as a complete binary tree, so all rows walk through all trees at once, level
by level; a branch that ends early leads on to the same value. What a feature contributed is the
sum, over the branches that asked for it, of how much they changed the expected log-odds. With the
model's bias the contributions add up to the log-odds (Saabas 2014, "Interpreting random forests").
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from hopscope.runtime.errors import EntailmentError

Floats = NDArray[np.float64]
ROWS = 1024
"""Walked through the trees together; bounds the memory used."""
DIGITS = 12
"""Log-odds are rounded to this many decimals: sums of floats differ in the last ones between
processors and batches."""


class Trees(NamedTuple):
    """Node i of a tree has the children 2i + 1, for values up to its threshold, and 2i + 2."""

    names: tuple[str, ...]
    """Of the features, in the order of the columns."""
    split: NDArray[np.int16]
    """The feature an inner node asks for, (tree, node)."""
    threshold: Floats
    """(tree, node); infinite below a branch that ended."""
    value: Floats
    """Expected log-odds at a node, leaves too, (tree, node)."""

    def logits(self, rows: Floats) -> Floats:
        """Log-odds of each row, (row,)."""
        parts = [self._logits(rows[i : i + ROWS]) for i in range(0, len(rows), ROWS)]
        return np.concatenate(parts) if parts else np.empty(0)

    def contributions(self, row: Floats) -> tuple[float, Floats]:
        """The bias, and what each feature added to the log-odds of one row, (feature,)."""
        path = self._walk(row[None])
        trees = np.arange(len(self.split))
        found = np.zeros(len(self.names))
        for here, below in pairwise(path):
            change = self.value[trees, below[0]] - self.value[trees, here[0]]
            np.add.at(found, self.split[trees, here[0]], change)
        return float(self.value[:, 0].sum()), found

    def _logits(self, rows: Floats) -> Floats:
        leaves = self._walk(rows)[-1]
        found = self.value[np.arange(len(self.split)), leaves].sum(axis=1)
        return np.asarray(np.round(found, DIGITS))

    def _walk(self, rows: Floats) -> list[NDArray[np.intp]]:
        """The nodes that the rows come by, level by level, each (row, tree)."""
        trees, nodes = self.split.shape[0], self.value.shape[1]
        at_row, at_tree = np.arange(len(rows))[:, None], np.arange(trees)
        path = [np.zeros((len(rows), trees), dtype=np.intp)]
        for _ in range(nodes.bit_length() - 1):
            here = path[-1]
            asked = rows[at_row, self.split[at_tree, here]]
            path.append(2 * here + 1 + (asked > self.threshold[at_tree, here]))
        return path


def load(path: Path, names: Sequence[str]) -> Trees:
    """Read trees from a safetensors file.

    Raises:
        EntailmentError: the file is not there, is damaged, or is over other features.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            found = tuple((file.metadata() or {}).get("features", "").split())
            split, threshold, value = map(file.get_tensor, ("split", "threshold", "value"))
    except (OSError, SafetensorError) as error:
        raise EntailmentError(f"{path} is no model that can be read: {error}") from error
    if found != tuple(names):
        raise EntailmentError(f"{path} was trained on other features than are measured here")
    return Trees(found, split, threshold, value)
