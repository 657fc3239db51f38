"""Shapley shares by regression on sampled coalitions (KernelSHAP), each paired with its complement.

The shares are the additive game nearest to the sampled values, under the condition that they sum to
the total: least squares over coalitions drawn by the Shapley kernel, a size s of n with probability
proportional to 1 / (s (n - s)), then s players at random. The result is a linear combination of the
values, computed in fractions, so that the sum is exact and an additive game is met exactly. In any
other game a player that changes nothing gets a share near 0, but not exactly 0.

Source: Lundberg & Lee 2017; sampling in pairs: Covert & Lee 2021 (arXiv 2012.01536).
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import sqrt
from statistics import stdev
from typing import NamedTuple

from hopscope.tracing.games.coalitions import EMPTY, Coalition
from hopscope.tracing.games.rule import ShareTerms, add, gain

Row = list[Fraction]
"""One number for each player."""
NEARLY_ALONE = 1e-6
"""Floor of 1 minus a pair's leverage: a pair that determines a share alone fits it with no
measurable error."""


class Regression(NamedTuple):
    """The sampled coalitions and the shares' coefficients, which do not depend on the values."""

    players: tuple[int, ...]
    pairs: tuple[tuple[Coalition, Coalition], ...]
    """Coalitions and their complements."""
    parts: Row
    """Each share's coefficient of the total; they sum to 1."""
    moves: Mapping[Coalition, Row]
    """Each share's coefficient of a sampled coalition's value; the complement's is its negative.
    They sum to 0."""

    @property
    def drawn(self) -> Iterator[Coalition]:
        """All sampled coalitions, repeated ones included."""
        return (coalition for pair in self.pairs for coalition in pair)

    def shares(self) -> ShareTerms:
        """Each player's share as a combination of coalition values."""
        shares: ShareTerms = {}
        everyone = frozenset(self.players)
        for i, player in enumerate(self.players):
            terms: dict[Coalition, Fraction] = {}
            add(terms, gain(everyone, EMPTY, self.parts[i]))
            for coalition in self.drawn:
                add(terms, gain(coalition, EMPTY, self.moves[coalition][i]))
            shares[player] = terms
        return shares

    def errors(
        self, shares: Mapping[int, float], value: Callable[[Coalition], float]
    ) -> dict[int, float]:
        """The standard error of each player's share: that of the regression with each pair left out
        in turn (HC3; MacKinnon & White 1985), from the residuals of the values."""
        residuals = {
            coalition: value(coalition) - value(EMPTY) - sum(shares[player] for player in coalition)
            for coalition in self.moves
        }
        left_out: list[tuple[Row, float]] = []
        for coalition, complement in self.pairs:
            move = self.moves[coalition]
            leverage = 2 * sum(m for m, p in zip(move, self.players, strict=True) if p in coalition)
            residual = residuals[coalition] - residuals[complement]
            left_out.append((move, residual / max(1 - float(leverage), NEARLY_ALONE)))
        scale = sqrt(len(self.pairs))
        return {
            player: scale * stdev(float(move[i]) * residual for move, residual in left_out)
            for i, player in enumerate(self.players)
        }


def regression(players: Sequence[int], coalitions: int, seed: int) -> Regression:
    """Sample this many coalitions, and more until they tell all players apart."""
    stream = random.Random(seed)
    everyone = frozenset(players)
    pairs: list[tuple[Coalition, Coalition]] = []
    inverse: list[Row] | None = None
    while inverse is None:
        for _ in range(1 if pairs else -(-coalitions // 2)):
            drawn = _drawn(stream, players)
            pairs.append((drawn, everyone - drawn))
        inverse = _inverse(_products(players, [drawn for drawn, _ in pairs]))
    sums = [sum(row, Fraction(0)) for row in inverse]
    parts = [part / sum(sums, Fraction(0)) for part in sums]
    moves: dict[Coalition, Row] = {}
    for coalition in {coalition: None for pair in pairs for coalition in pair}:
        inside = [i for i, player in enumerate(players) if player in coalition]
        free = [sum((row[i] for i in inside), Fraction(0)) for row in inverse]
        total = sum(free, Fraction(0))
        moves[coalition] = [move - part * total for move, part in zip(free, parts, strict=True)]
    return Regression(tuple(players), tuple(pairs), parts, moves)


def _drawn(stream: random.Random, players: Sequence[int]) -> Coalition:
    count = len(players)
    sizes = range(1, count)
    [size] = stream.choices(sizes, weights=[1 / (size * (count - size)) for size in sizes])
    return frozenset(stream.sample(list(players), size))


def _products(players: Sequence[int], drawn: Sequence[Coalition]) -> list[Row]:
    """For each two players, the number of coalitions and complements that hold both."""
    return [
        [Fraction(sum((one in c) == (other in c) for c in drawn)) for other in players]
        for one in players
    ]


def _inverse(matrix: Sequence[Row]) -> list[Row] | None:
    """The inverse by Gauss-Jordan elimination; None for a singular matrix."""
    size = len(matrix)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(size))] for i, row in enumerate(matrix)]
    for i in range(size):
        pivot = next((k for k in range(i, size) if rows[k][i]), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        first = rows[i][i]
        rows[i] = [value / first for value in rows[i]]
        for k in range(size):
            factor = rows[k][i]
            if k != i and factor:
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[size:] for row in rows]
