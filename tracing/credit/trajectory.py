"""Trajectory credit: the value each step added to the evidence before it.

    m_t = v(1..t) - v(1..t-1)

The credits sum to v(all) - v(none). In a strict chain of hops the step that completes the chain
gets everything; see `shapley`. This is ΔSePer step by step (Dai et al. 2025, eq. 11).
"""

from collections.abc import Sequence

from hopscope.tracing.games.rule import CreditRule, LinearRule, ShareTerms, gain

NAME = "trajectory"


def build() -> CreditRule:
    return LinearRule(NAME, _terms)


def _terms(players: Sequence[int]) -> ShareTerms:
    return {
        player: gain(frozenset(players[: t + 1]), frozenset(players[:t]))
        for t, player in enumerate(players)
    }
