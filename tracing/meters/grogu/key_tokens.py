"""The arithmetic of GroGU: the tokens that carry the answer, and the reader's confidence in them.

Pure functions of per-token sequences in nats; the calls to the reader are in `meters.grogu`.

Source: GroGU (2026), section 3.2 and appendix C.1. The paper defines keys by entropy and calls
the perplexity form an "easy extension"; here it uses the negative log-probability in the place
of the entropy throughout. The printed condition of C.1 mentions the documents, which the
ungrounded answer does not have; we take it to be a misprint.
"""

from collections.abc import Sequence
from math import ceil, exp
from typing import Literal

Score = Literal["key_entropy", "entropy", "key_ppl", "ppl"]
"""`entropy` the mean token entropy, `ppl` exp of the mean negative log-probability; `key_` over
the key tokens only."""


def grounded_keys(
    grounded: Sequence[float], ungrounded: Sequence[float], alpha: float, top: float
) -> tuple[int, ...]:
    """Positions of the tokens that the documents change: |grounded - ungrounded| > alpha.

    Both sequences are about the same tokens, with and without the documents. Where the documents
    change none, the `top` share of the highest grounded values.
    """
    changed = (abs(g - u) > alpha for g, u in zip(grounded, ungrounded, strict=True))
    return tuple(i for i, key in enumerate(changed) if key) or highest(grounded, top)


def ungrounded_keys(values: Sequence[float], alpha: float, top: float) -> tuple[int, ...]:
    """Positions of the tokens of a closed-book answer above alpha, else the `top` share (C.1)."""
    return tuple(i for i, v in enumerate(values) if v > alpha) or highest(values, top)


def highest(values: Sequence[float], top: float) -> tuple[int, ...]:
    """Positions of the max(1, ⌈top·length⌉) highest values; of equal values the earlier first.

    The paper does not define the rounding of the share.
    """
    # 0.1 · 30 is a little more than 3 in floating point.
    count = max(1, ceil(round(top * len(values), 9)))
    ranked = sorted(range(len(values)), key=lambda i: (-values[i], i))
    return tuple(sorted(ranked[:count]))


def entropy(entropies: Sequence[float]) -> float:
    """Mean token entropy."""
    return sum(entropies) / len(entropies)


def perplexity(logprobs: Sequence[float]) -> float:
    """exp of the mean negative log-probability."""
    return exp(-sum(logprobs) / len(logprobs))


def mean_inverse_probability(logprobs: Sequence[float]) -> float:
    """Mean of 1/p, the other reading of the paper's "average perplexity"."""
    return sum(exp(-value) for value in logprobs) / len(logprobs)
