"""Leave-one-out credit: the value lost without the step, or without the passage.

    l_t = v(all) - v(all but t)

Two steps that bring the same information both get 0, two that need each other both get all: the
credits do not sum to the total.
"""

from collections.abc import Sequence

from hopscope.tracing.games.rule import CreditRule, LinearRule, ShareTerms, gain

NAME = "leave_one_out"


def build() -> CreditRule:
    return LinearRule(NAME, _terms)


def _terms(players: Sequence[int]) -> ShareTerms:
    everyone = frozenset(players)
    return {player: gain(everyone, everyone - {player}) for player in players}
