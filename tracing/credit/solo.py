"""Solo credit: what the step's passages are worth on their own.

    s_t = v({t}) - v(none)

The second hop of a chain is worth nothing alone; the credits do not sum to the total.
"""

from collections.abc import Sequence

from hopscope.tracing.coalitions import EMPTY
from hopscope.tracing.credit._rule import CreditRule, Linear, Share, gain


def build() -> CreditRule:
    return Linear("solo", _terms)


def _terms(players: Sequence[int]) -> Share:
    return {player: gain(frozenset({player}), EMPTY) for player in players}
