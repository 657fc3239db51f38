"""Leave-one-out credit: what the run would lose without the step.

    l_t = v(all) - v(all but t)

Two steps that bring the same information both get 0, two that need each other both get all: the
credits do not sum to the total. Later queries are kept as they were.
"""

from collections.abc import Sequence

from hopscope.tracing.credit._rule import CreditRule, Linear, Share, gain


def build() -> CreditRule:
    return Linear("leave_one_out", _terms)


def _terms(players: Sequence[int]) -> Share:
    everyone = frozenset(players)
    return {player: gain(everyone, everyone - {player}) for player in players}
