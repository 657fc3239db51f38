"""Solo credit: the value of the step's passages on their own.

    s_t = v({t}) - v(none)

The second hop of a chain is worth nothing alone; the credits do not sum to the total.
"""

from collections.abc import Sequence

from hopscope.tracing.games.coalitions import EMPTY
from hopscope.tracing.games.rule import CreditRule, LinearRule, ShareTerms, gain


def build() -> CreditRule:
    return LinearRule("solo", _terms)


def _terms(players: Sequence[int]) -> ShareTerms:
    return {player: gain(frozenset({player}), EMPTY) for player in players}
