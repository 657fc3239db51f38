"""Shapley credit: a player's gain, averaged over all orders in which the players could join.

Players are steps, or passages of a step.

The only sharing that is efficient (sums to the total), symmetric, linear and gives nothing to a
player that changes nothing (Shapley 1953). Steps that need each other share alike, which is why
the first hop of a chain earns something.

Up to eight players exactly, from the values of all their coalitions. Above, the mean over 64
random orders, each followed by its reverse (antithetic pairs, Mitchell et al. 2022); every order
telescopes, so the credits still sum to the total exactly. The standard error over the pairs is
in the estimator's name and, times Student's quantile, widens the meter's interval, or is the
interval where the meter has none. Evidence is always shown in the order of the
trajectory, whatever order the players join in.
"""

import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from math import factorial, hypot, sqrt
from statistics import stdev
from typing import NamedTuple

from scipy.stats import t

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Measurement
from hopscope.tracing.coalitions import Coalition, Coalitions, Terms
from hopscope.tracing.credit._rule import CreditRule, Linear, Share, add, gain

EXACT_PLAYERS = 8
FEWEST_ORDERS = 4
"""Two pairs: with fewer there is no standard error."""


def build(*, permutations: int = 64, seed: int = 0) -> CreditRule:
    """The rule.

    Args:
        permutations: orders sampled above eight players, rounded up to an even number.
        seed: of that sampling.

    Raises:
        UsageError: too few orders to tell their error.
    """
    if permutations < FEWEST_ORDERS:
        raise UsageError(
            f"shapley.permutations={permutations}: give {FEWEST_ORDERS} or more, or their error "
            "is unknown"
        )
    return Shapley(permutations + permutations % 2, seed)


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
            _widened(measurement, [pair[member] for pair in pairs], coalitions)
            if member in coalitions.full
            else measurement
            for member, measurement in zip(coalitions.game.members, shares, strict=True)
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
    """The measurement with the error of sampling orders in its interval."""
    if measurement.value is None:
        return measurement
    gains = [coalitions.combine(terms, "pair").value or 0.0 for terms in pairs]
    error = stdev(gains) / sqrt(len(gains))
    reach = float(t.ppf(0.975, len(gains) - 1)) * error
    value = measurement.value
    low = value if measurement.low is None else measurement.low
    high = value if measurement.high is None else measurement.high
    return measurement.model_copy(
        update={
            "estimator": f"{measurement.estimator} +- {error:.6f}",
            "low": value - hypot(value - low, reach),
            "high": value + hypot(high - value, reach),
        }
    )
