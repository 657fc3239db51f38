"""Shapley credit: a step's gain, averaged over all orders in which the steps could join.

The only sharing that is efficient (sums to the total), symmetric, linear and gives nothing to a
step that changes nothing (Shapley 1953). Steps that need each other share alike, which is why
the first hop of a chain earns something.

Up to eight players exactly, from the values of all their coalitions. Above, the mean over 64
random orders, each followed by its reverse (antithetic pairs, Mitchell et al. 2022); every order
telescopes, so the credits still sum to the total exactly. The standard error over the pairs is
in the estimator's name and widens the interval. Evidence is always shown in the order of the
trajectory, whatever order the players join in.
"""

import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from math import factorial, hypot, sqrt
from statistics import stdev
from typing import NamedTuple

from hopscope.runtime.types import Measurement
from hopscope.tracing.coalitions import Coalition, Coalitions, Terms
from hopscope.tracing.credit._rule import CreditRule, Linear, Share, add, gain

EXACT_PLAYERS = 8
Z = 1.959963984540054
"""95 % of a normal distribution lies within ±Z standard deviations."""


def build(*, permutations: int = 64, seed: int = 0) -> CreditRule:
    """The rule.

    Args:
        permutations: orders sampled above eight players, rounded up to an even number, at least
            four.
        seed: of that sampling.
    """
    return Shapley(max(4, permutations + permutations % 2), seed)


class Shapley(NamedTuple):
    """Exact for few players, sampled for many."""

    permutations: int
    seed: int

    @property
    def name(self) -> str:
        return "shapley"

    def needs(self, players: Sequence[int]) -> Iterable[Coalition]:
        return self._linear(players).needs(players)

    def share(self, coalitions: Coalitions) -> list[Measurement]:
        players = coalitions.players
        shares = self._linear(players).share(coalitions)
        if len(players) <= EXACT_PLAYERS:
            return shares
        orders = self._orders(players)
        pairs = [of_orders(pair) for pair in zip(orders[::2], orders[1::2], strict=True)]
        return [
            _widened(measurement, [pair[step.index] for pair in pairs], coalitions)
            if step.index in coalitions.full
            else measurement
            for step, measurement in zip(coalitions.run.steps, shares, strict=True)
        ]

    def _linear(self, players: Sequence[int]) -> Linear:
        if len(players) <= EXACT_PLAYERS:
            return Linear("shapley", exact)
        name = f"shapley(permutations={self.permutations}, antithetic, seed={self.seed})"
        return Linear(name, lambda players: of_orders(self._orders(players)))

    def _orders(self, players: Sequence[int]) -> list[tuple[int, ...]]:
        """Random orders, each followed by its reverse."""
        stream = random.Random(self.seed)
        orders: list[tuple[int, ...]] = []
        for _ in range(self.permutations // 2):
            order = tuple(stream.sample(list(players), len(players)))
            orders += [order, order[::-1]]
        return orders


def exact(players: Sequence[int]) -> Share:
    """Σ over S without t of |S|!(n-|S|-1)!/n! · (v(S+t) - v(S))."""
    count = len(players)
    share: dict[int, dict[Coalition, Fraction]] = {player: {} for player in players}
    for player in players:
        others = [other for other in players if other != player]
        for size in range(count):
            weight = Fraction(factorial(size) * factorial(count - size - 1), factorial(count))
            for chosen in combinations(others, size):
                before = frozenset(chosen)
                add(share[player], gain(before | {player}, before, weight))
    return dict(share)


def of_orders(orders: Sequence[Sequence[int]]) -> Share:
    """The mean gain of each player over these orders of joining."""
    share: dict[int, dict[Coalition, Fraction]] = {}
    weight = Fraction(1, len(orders))
    for order in orders:
        for position, player in enumerate(order):
            before = frozenset(order[:position])
            add(share.setdefault(player, {}), gain(before | {player}, before, weight))
    return dict(share)


def _widened(
    measurement: Measurement, pairs: Sequence[Terms], coalitions: Coalitions
) -> Measurement:
    """The measurement with the error of sampling orders added to its interval."""
    if measurement.value is None:
        return measurement
    gains = [coalitions.combine(terms, "pair").value or 0.0 for terms in pairs]
    error = stdev(gains) / sqrt(len(gains))
    value, low, high = measurement.value, measurement.low, measurement.high
    return measurement.model_copy(
        update={
            "estimator": f"{measurement.estimator} +- {error:.6f}",
            "low": None if low is None else value - hypot(value - low, Z * error),
            "high": None if high is None else value + hypot(high - value, Z * error),
        }
    )
