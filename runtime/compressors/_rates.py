"""The share of each text that stays, larger for higher ranks.

Source: LongLLMLingua (arXiv 2310.06839), section 4.2, where the rate of the k-th of n texts is
tau + delta * (1 - 2k / n), held within [0, 1]. As in the authors' program the places run from 0 to
n - 1, so that the rates lie evenly about tau.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import floor

HALVINGS = 60  # an interval of 3 becomes as short as doubles go


def rates(lengths: Sequence[int], room: float, spread: float) -> list[float]:
    """The share of each text that stays, in [0, 1]. From the first text to the last the shares fall
    by 2 * `spread` in even steps; their level makes the kept tokens sum to `room`, or to all tokens
    if these are fewer."""
    last = max(1, len(lengths) - 1)
    offsets = [spread * (1 - 2 * place / last) for place in range(len(lengths))]

    def at(height: float) -> list[float]:
        return [min(1.0, max(0.0, height + offset)) for offset in offsets]

    low, high = -spread, 1 + spread
    if room >= sum(lengths):
        return at(high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        kept = sum(rate * n for rate, n in zip(at(middle), lengths, strict=True))
        low, high = (low, middle) if kept > room else (middle, high)
    return at(low)


def ends(lengths: Sequence[int], room: float, spread: float) -> list[int]:
    """Cumulative limits in whole tokens, so that the unused part of one share goes to the next."""
    shares = zip(rates(lengths, room, spread), lengths, strict=True)
    return [floor(end + 1e-6) for end in accumulate(rate * n for rate, n in shares)]
