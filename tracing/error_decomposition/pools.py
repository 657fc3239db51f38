"""How much could a perfect choice among a pool's answers get right, by the size of the pool?

A pool is right on a question if any of its systems is: the upper bound of every ensemble of them.
The mean over all pools of m of n systems is exact: of a question that w systems get wrong, the
share of pools without a right system is C(w, m) / C(n, m).

Source: Li et al. 2024 (arXiv 2405.20680), section 3.2 and Figure 5, whose boxes are the spread over
the pools of one size.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

MOST = 20_000
"""Pools of a size that are looked at one by one; of more as many are drawn."""


class PoolSize(NamedTuple):
    """The pools of one size."""

    size: int
    pools: int
    """All of them."""
    seen: int
    """Those behind `quartiles` and `best`: all, or the drawn ones."""
    quartiles: tuple[float, float, float, float, float]
    """Lowest, lower quartile, median, upper quartile and highest share of questions that a pool has
    right."""
    best: tuple[str, ...]
    """A pool with the highest, the first in the given order."""
    by_question: Floats
    """The share of all pools that have each question right; their mean is the pools' mean."""


def pool_sizes(right: Mapping[str, Sequence[bool]], *, seed: int = 0) -> list[PoolSize]:
    """Every size from one system to all of them, over the same questions; none without questions.

    Args:
        seed: of the drawing of pools, where there are more than `MOST`.

    Raises:
        ValueError: the systems have different numbers of questions.
    """
    lengths = {len(row) for row in right.values()}
    if len(lengths) > 1:
        raise ValueError(f"systems with {sorted(lengths)} questions cannot be compared")
    if not any(lengths):
        return []
    table = np.array(list(right.values()), bool)  # (system, question)
    names = list(right)
    return [_of_size(table, names, size, seed) for size in range(1, len(names) + 1)]


def _of_size(table: Bools, names: Sequence[str], size: int, seed: int) -> PoolSize:
    pools = list(_pools(len(names), size, seed))
    shares = np.array([table[list(members)].any(axis=0).mean() for members in pools])
    low, lower, middle, upper, high = np.quantile(shares, (0, 0.25, 0.5, 0.75, 1)).tolist()
    return PoolSize(
        size,
        comb(len(names), size),
        len(pools),
        (low, lower, middle, upper, high),
        tuple(names[i] for i in pools[int(shares.argmax())]),
        _by_question(table, size),
    )


def _pools(systems: int, size: int, seed: int) -> Iterator[tuple[int, ...]]:
    """All pools of this size, or `MOST` different ones of them."""
    if comb(systems, size) <= MOST:
        yield from combinations(range(systems), size)
        return
    rng = np.random.default_rng(seed)
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < MOST:
        drawn[tuple(sorted(rng.choice(systems, size, replace=False).tolist()))] = None
    yield from drawn


def _by_question(table: Bools, size: int) -> Floats:
    systems = len(table)
    wrong = (~table).sum(axis=0)
    missed = [comb(w, size) / comb(systems, size) for w in range(systems + 1)]
    found: Floats = 1 - np.array(missed)[wrong]
    return found
