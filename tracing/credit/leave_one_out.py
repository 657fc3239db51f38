"""Leave-one-out credit: what would be lost without the step, or without the passage.

    l_t = v(all) - v(all but t)

Two steps that bring the same information both get 0, two that need each other both get all: the
credits do not sum to the total.
"""

from collections.abc import Sequence

from hopscope.tracing.credit._rule import CreditRule, Linear, Share, gain

NAME = "leave_one_out"


def build() -> CreditRule:
    return Linear(NAME, _terms)


def _terms(players: Sequence[int]) -> Share:
    everyone = frozenset(players)
    return {player: gain(everyone, everyone - {player}) for player in players}
