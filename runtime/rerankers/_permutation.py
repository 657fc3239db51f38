"""The order that a model puts passages into, as RankGPT writes it: [3] > [1] > [2]."""

from typing import NamedTuple

from hopscope.runtime.rerankers._selection import numbers


class Permutation(NamedTuple):
    """An order of 1..n."""

    positions: tuple[int, ...]
    """All of 1..n, best first."""
    ok: bool
    """Whether the reply named any of them."""


def permutation(reply: str, n: int) -> Permutation:
    """The order a reply names; what it leaves out follows in its old order.

    Bracketed numbers stand before those in prose, which are no ranks ("the 2 best are [3] > [1]").
    """
    named = numbers(reply, n)
    rest = (p for p in range(1, n + 1) if p not in named)
    return Permutation((*named, *rest), ok=bool(named))
