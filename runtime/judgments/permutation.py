"""Parses a model's ranking in RankGPT's form: [3] > [1] > [2]."""

from typing import NamedTuple

from hopscope.runtime.judgments.selection import numbers


class Permutation(NamedTuple):
    """An order of 1..n."""

    positions: tuple[int, ...]
    """All of 1..n, best first."""
    ok: bool
    """Whether the reply named any of them."""


def permutation(reply: str, n: int) -> Permutation:
    """The order in a reply; missing passages follow in their old order.

    Bracketed numbers take precedence over numbers in prose ("the 2 best are [3] > [1]").
    """
    named = numbers(reply, n)
    rest = (p for p in range(1, n + 1) if p not in named)
    return Permutation((*named, *rest), ok=bool(named))
