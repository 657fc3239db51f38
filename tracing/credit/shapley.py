"""Shapley credit: a player's gain, averaged over all orders in which the players could join.

Players are steps, or passages of a step.

The only sharing that is efficient (sums to the total), symmetric, linear and gives nothing to a
player that changes nothing (Shapley 1953). Steps that need each other share alike, which is why
the first hop of a chain earns something.

Up to eight players exactly, from the values of all their coalitions. Above, by default, the mean
over 64 random orders, each followed by its reverse (antithetic pairs, Mitchell et al. 2022); every
order telescopes, so the credits still sum to the total exactly, and a player that changes nothing
still gets exactly 0. With `sampling=kernel` by regression on about as many coalitions (KernelSHAP,
see `_kernel`); docs/evidence/credit.md compares the two. With `sampling=rotations` by random orders
with all their rotations, a sample stratified by size: each player joins once at each place. A
credit budget (`tracing.credit_budget`) takes it, because few orders suffice.

The standard error is in the estimator and, times Student's quantile, widens the meter's interval,
or is the interval where the meter has none. Evidence is always shown in the order of the
trajectory, whatever order the players join in.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import factorial, hypot, sqrt
from statistics import stdev
from typing import Literal, NamedTuple

from scipy.special import stdtrit

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Measurement
from hopscope.tracing.credit import _kernel
from hopscope.tracing.games.coalitions import Coalition, Coalitions
from hopscope.tracing.games.rule import CreditRule, LinearRule, ShareTerms, add, gain

HEADING = "Shapley"
Sampling = Literal["permutations", "rotations", "kernel"]

EXACT_PLAYERS = 8
FEWEST_GROUPS = 2
"""Pairs of orders, or orders with their rotations: with fewer there is no standard error."""
FEWEST_ORDERS = 2 * FEWEST_GROUPS


def build(
    *, permutations: int = 64, seed: int = 0, sampling: Sampling = "permutations"
) -> CreditRule:
    """The rule.

    Args:
        permutations: orders sampled above eight players, rounded up to an even number; with
            `rotations` to a multiple of the players.
        seed: seed of the sampling.
        sampling: `kernel` samples as many coalitions as these orders of the players pass through.

    Raises:
        UsageError: too few orders for a standard error.
    """
    if permutations < FEWEST_ORDERS:
        raise UsageError(
            f"shapley.permutations={permutations}: give {FEWEST_ORDERS} or more; fewer have no "
            "standard error"
        )
    return Shapley(permutations + permutations % 2, seed, sampling)


class Shapley(NamedTuple):
    """Exact for few players, sampled for many."""

    permutations: int
    seed: int
    sampling: Sampling = "permutations"
    exact_players: int = EXACT_PLAYERS
    """The most players whose coalitions are all measured."""

    @property
    def name(self) -> str:
        return "shapley"

    def needs(self, players: Sequence[int]) -> Iterable[Coalition]:
        return self.linear(players).needs(players)

    def share(self, coalitions: Coalitions) -> list[Measurement]:
        players = coalitions.players
        shares = self.linear(players).share(coalitions)
        if len(players) <= self.exact_players:
            return shares
        credits = dict(zip(coalitions.game.members, shares, strict=True))
        errors = self._errors(coalitions, {player: credits[player].value for player in players})
        if self.sampling == "kernel":
            free = (self.permutations // 2 - 1) * (len(players) - 1)
        else:
            free = len(self._groups(players)) - 1
        return [
            widened(measurement, errors[member], free) if member in errors else measurement
            for member, measurement in credits.items()
        ]

    def linear(self, players: Sequence[int]) -> LinearRule:
        """The shares as combinations of coalition values, with a name that tells the sample."""
        if len(players) <= self.exact_players:
            return LinearRule("shapley", exact)
        if self.sampling == "kernel":
            drawn = self._regression(players)
            count = 2 * len(drawn.pairs)
            name = f"shapley(kernel, coalitions={count}, paired, seed={self.seed})"
            return LinearRule(name, lambda _: drawn.shares())
        groups = self._groups(players)
        way = "rotations" if self.sampling == "rotations" else "antithetic"
        count = sum(map(len, groups))
        name = f"shapley(permutations={count}, {way}, seed={self.seed})"
        return LinearRule(name, lambda _: of_orders([order for g in groups for order in g]))

    def draws(self, players: Sequence[int]) -> list[list[tuple[Coalition, float]]]:
        """The sampled coalitions, without the empty and the full one, in independent groups. Each
        has a weight such that, for every size, a group's weights sum to 1 on average."""
        if self.sampling == "kernel":
            count = len(players)
            total = sum(1 / (size * (count - size)) for size in range(1, count))
            return [
                [(each, total * len(each) * (count - len(each)) / 2) for each in pair]
                for pair in self._regression(players).pairs
            ]
        return [
            [
                (frozenset(order[:size]), 1 / len(group))
                for order in group
                for size in range(1, len(order))
            ]
            for group in self._groups(players)
        ]

    def _errors(
        self, coalitions: Coalitions, shares: Mapping[int, float | None]
    ) -> dict[int, float]:
        """The standard error of each player's share that was measured."""
        measured = {player: value for player, value in shares.items() if value is not None}
        if self.sampling == "kernel":
            # Every share needs all values: all shares are measured, or none.
            return measured and self._regression(coalitions.players).errors(
                measured, lambda coalition: coalitions.value(coalition).value or 0.0
            )
        groups = [of_orders(group) for group in self._groups(coalitions.players)]
        return {
            player: stdev(
                coalitions.combine(group[player], "group").value or 0.0 for group in groups
            )
            / sqrt(len(groups))
            for player in measured
        }

    def _regression(self, players: Sequence[int]) -> _kernel.Regression:
        return _kernel.regression(players, self.permutations * (len(players) - 1), self.seed)

    def _groups(self, players: Sequence[int]) -> list[list[tuple[int, ...]]]:
        """Independent groups of random orders: one with its reverse, or with all its rotations."""
        stream = random.Random(self.seed)
        size = len(players) if self.sampling == "rotations" else 2
        groups: list[list[tuple[int, ...]]] = []
        for _ in range(max(FEWEST_GROUPS, -(-self.permutations // size))):
            order = tuple(stream.sample(list(players), len(players)))
            if self.sampling == "rotations":
                groups.append([order[place:] + order[:place] for place in range(len(order))])
            else:
                groups.append([order, order[::-1]])
        return groups


def exact(players: Sequence[int]) -> ShareTerms:
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


def of_orders(orders: Sequence[Sequence[int]]) -> ShareTerms:
    """The mean gain of each player over these orders of joining."""
    share: dict[int, dict[Coalition, Fraction]] = {}
    weight = Fraction(1, len(orders))
    for order in orders:
        for position, player in enumerate(order):
            before = frozenset(order[:position])
            add(share.setdefault(player, {}), gain(before | {player}, before, weight))
    return dict(share)


def widened(measurement: Measurement, error: float, free: int) -> Measurement:
    """The measurement with the sampling error in its interval and its estimator.

    Args:
        error: the standard error.
        free: its degrees of freedom.
    """
    value = measurement.value or 0.0
    # The quantile of scipy.stats is the same, and takes half a second to import.
    reach = float(stdtrit(free, 0.975)) * error
    low = value if measurement.low is None else measurement.low
    high = value if measurement.high is None else measurement.high
    return measurement.model_copy(
        update={
            "estimator": f"{measurement.estimator} +- {error:.6f}",
            "low": value - hypot(value - low, reach),
            "high": value + hypot(high - value, reach),
        }
    )
