"""Pairwise interactions: which steps or passages need each other, and which are redundant.

The Shapley interaction index of players i and j of n (Grabisch & Roubens 1999):

    I(i, j) = Σ over S without i and j of (n-|S|-2)! |S|! / (n-1)! · Δ(S)
    Δ(S) = v(S+i+j) - v(S+i) - v(S+j) + v(S)

It is positive where the two bring more together than apart (each hop of a chain), negative where
one makes the other redundant (two copies of a fact), and 0 for all pairs of an additive game.

Up to eight players exactly, from the values of all coalitions. Above, from the coalitions that the
Shapley rule sampled (SHAP-IQ, Fumagalli et al. 2023, arXiv 2303.01179): a sampled coalition of
size k stands for all of that size. The additive game of the Shapley credits, whose
interactions are 0, is subtracted before; that lowers the variance and leaves a bias of the order of
1 / orders. The standard error over the independent draws widens the interval.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import factorial, sqrt
from statistics import stdev
from typing import NamedTuple

from hopscope.runtime.types import Measurement
from hopscope.tracing.credit.shapley import EXACT_PLAYERS, Shapley, widened
from hopscope.tracing.games.coalitions import (
    EMPTY,
    NO_EVIDENCE,
    Coalition,
    Coalitions,
    GameMember,
    Terms,
)
from hopscope.tracing.games.rule import add

NAME = "interaction"
NOT_COMPARABLE = (
    "without documents the key tokens follow another rule, so coalitions are not comparable"
)


class Interaction(NamedTuple):
    """The interaction of two members of a game, in the unit of the meter."""

    first: GameMember
    second: GameMember
    measurement: Measurement


def interactions(coalitions: Coalitions, rule: Shapley) -> list[Interaction]:
    """The interactions of all pairs of players, in the order of the trajectory.

    Args:
        rule: the Shapley rule whose sampled coalitions were measured, for more than eight players.
    """
    players = coalitions.players
    pairs = list(combinations(players, 2))
    if not pairs:
        return []
    if not coalitions.values.comparable and coalitions.key(EMPTY) == NO_EVIDENCE:
        found = [Measurement(value=None, reason=NOT_COMPARABLE, estimator=NAME) for _ in pairs]
    elif len(players) <= EXACT_PLAYERS:
        found = [coalitions.combine(exact(players, *pair), NAME) for pair in pairs]
    else:
        found = _sampled(coalitions, rule, pairs)
    identify = coalitions.game.identify
    return [
        Interaction(identify(first), identify(second), measurement)
        for (first, second), measurement in zip(pairs, found, strict=True)
    ]


def exact(players: Sequence[int], first: int, second: int) -> Terms:
    """The index of two players as a combination of the values of all coalitions."""
    count = len(players)
    others = [player for player in players if player not in (first, second)]
    terms: dict[Coalition, Fraction] = {}
    for size in range(count - 1):
        weight = Fraction(factorial(count - size - 2) * factorial(size), factorial(count - 1))
        for chosen in combinations(others, size):
            before = frozenset(chosen)
            for joined, sign in (((first, second), 1), ((first,), -1), ((second,), -1), ((), 1)):
                add(terms, {before.union(joined): sign * weight})
    return terms


def _sampled(
    coalitions: Coalitions, rule: Shapley, pairs: Sequence[tuple[int, int]]
) -> list[Measurement]:
    import numpy as np

    players = coalitions.players
    count = len(players)
    groups = rule.draws(players)
    linear = rule.linear(players)
    shares = linear.terms(players)
    used = {c for terms in shares.values() for c in terms}
    used |= {coalition for group in groups for coalition, _ in group}
    missing = next((v for v in map(coalitions.value, used) if v.value is None), None)
    name = f"{NAME} from {linear.name}"
    if missing is not None:
        return [Measurement(value=None, reason=missing.reason, estimator=name) for _ in pairs]
    order = sorted(used, key=lambda each: (len(each), sorted(each)))
    column = {coalition: place for place, coalition in enumerate(order)}
    inside = np.array([[player in each for player in players] for each in order], dtype=float)
    values = np.array([coalitions.value(each).value for each in order], dtype=float)
    additive = np.zeros((count, len(order)))  # (player, coalition): the Shapley credits
    for row, player in enumerate(players):
        for coalition, coefficient in shares[player].items():
            additive[row, column[coalition]] = float(coefficient)
    # (coalition, coalition): a coalition's value minus that in the additive game.
    residual = np.eye(len(order)) - inside @ additive
    residual[:, column[EMPTY]] -= 1.0
    left = residual @ values
    place = {player: row for row, player in enumerate(players)}
    found = []
    for first, second in pairs:
        both = inside[:, place[first]] + inside[:, place[second]]
        by_group = np.zeros((len(groups), len(order)))
        for row, group in enumerate(groups):
            for coalition, weight in group:
                at = column[coalition]
                by_group[row, at] += weight * _coefficient(count, len(coalition), int(both[at]))
        coefficients = by_group.mean(axis=0) @ residual
        terms = {
            coalition: Fraction(float(coefficient))
            for coalition, coefficient in zip(order, coefficients, strict=True)
            if coefficient
        }
        error = stdev((by_group @ left).tolist()) / sqrt(len(groups))
        measured = coalitions.combine(terms, name)
        if measured.value is not None:
            measured = widened(measured, error, len(groups) - 1)
        found.append(measured)
    return found


def _coefficient(count: int, size: int, joined: int) -> float:
    """The index's coefficient of a coalition of this size that holds `joined` of the pair, times
    the number of coalitions of this size."""
    if joined == 2:
        return count / (size * (size - 1))
    if joined == 1:
        return -count / (size * (count - size))
    return count / ((count - size) * (count - size - 1))
