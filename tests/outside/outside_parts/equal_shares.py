"""Equal shares: each step that found something gets as much of the whole gain as every other."""

from collections.abc import Sequence
from fractions import Fraction

from hopscope.tracing.games.rule import CreditRule, LinearRule, ShareTerms, gain


def build() -> CreditRule:
    return LinearRule("equal_shares", _terms)


def _terms(players: Sequence[int]) -> ShareTerms:
    share = Fraction(1, max(1, len(players)))
    return {player: gain(frozenset(players), frozenset(), share) for player in players}
