"""EoR's voter: it chooses the answer that is most similar to the others.

    S_sim(y_m, y_n) = Σ_i ω^s_i sim_i(y_m, y_n)                    (6)
    s_m = ω^r_m · S_pool({S_sim(y_m, y_n)}_{n ≠ m})                (7)

Invariants: ω^s is normalised to sum 1; an empty answer has similarity 0 to all; among equal scores
the first in the order of the pool wins. All functions accept leading axes, so that the fit can try
weights on all questions at once. Source: Li et al. 2024 (arXiv 2405.20680), appendix C.4; the
authors' code has `voting` and `majority_voting` in place of majority and plurality.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Pooling = Literal["mean", "max", "majority", "plurality", "voting", "majority_voting"]
Floats = NDArray[np.float64]

DECIMALS = 12
"""Scores that agree to this many decimals are equal: the order of a sum must not decide."""


class VotingRule(NamedTuple):
    """The rule that counts votes."""

    pooling: Pooling = "mean"
    same: float = 0.8
    """From this similarity on two answers count as the same, for rules that count votes."""
    threshold: float = 0.1
    """Retrievers of at most this weight are left out."""
    zero_weight_votes: bool = False
    """Whether retrievers that are left out still vote on the others, as in the paper."""


class Verdict(NamedTuple):
    scores: Floats  # (..., retriever)
    winner: NDArray[np.intp]  # (...)


def weighted(similarities: Floats, weights: Sequence[float] | Floats) -> Floats:
    """Equation 6 over all pairs; 0 if all weights are 0.

    Args:
        similarities: (..., similarity, answer, answer), each in [0, 1].
        weights: ω^s, one for each similarity.
    """
    omega = np.asarray(weights, dtype=np.float64)
    total = omega.sum()
    share = omega / total if total > 0 else omega
    summed: Floats = np.einsum("...kmn,k->...mn", similarities, share)
    return summed


def pool(similarity: Floats, rule: VotingRule) -> Floats:
    """S_pool of each answer's similarities to the others; 0 for a single answer.

    Args:
        similarity: (..., answer, answer); the diagonal does not count.
    """
    answers = similarity.shape[-1]
    others = answers - 1
    if others < 1:
        return np.zeros(similarity.shape[:-1])
    off_diagonal = ~np.eye(answers, dtype=bool)
    rows = similarity[..., off_diagonal].reshape(*similarity.shape[:-1], others)
    result: Floats
    match rule.pooling:
        case "mean":
            result = rows.mean(axis=-1)
        case "max":
            result = rows.max(axis=-1)
        case "majority":
            alike = (rows > rule.same).sum(axis=-1)
            result = (alike >= others / 2).astype(np.float64)
        case "plurality":
            alike = (rows > rule.same).sum(axis=-1)
            result = (alike == alike.max(axis=-1, keepdims=True)).astype(np.float64)
        case "voting":
            alike = (rows >= rule.same).sum(axis=-1)
            # In the authors' code the count is 0 for two answers, and the mean is undefined.
            least = max(1, -(-(others + 1) // 2) - 1)
            result = np.where(alike >= least, _top(rows, np.full_like(alike, least)), 0.0)
        case "majority_voting":
            alike = (rows >= rule.same).sum(axis=-1)
            most = alike.max(axis=-1, keepdims=True)
            # If no two answers are the same, their highest similarities decide.
            result = np.where(alike == most, _top(rows, alike), 0.0)
    return result


def _top(rows: Floats, counts: NDArray[np.intp]) -> Floats:
    """The mean of the `counts` highest values of each row, at least of one."""
    counts = np.maximum(counts, 1)
    sums = np.flip(np.sort(rows, axis=-1), axis=-1).cumsum(axis=-1)
    highest: Floats = np.take_along_axis(sums, counts[..., None] - 1, axis=-1)[..., 0] / counts
    return highest


def vote(similarity: Floats, weights: Sequence[float] | Floats, rule: VotingRule) -> Verdict:
    """Equation 7 and its argmax.

    Retrievers at or below the threshold score zero and cannot win while another remains; a single
    remaining one wins. Without `zero_weight_votes` similarities to them are not pooled, as in the
    authors' code; this can change the winner.

    Args:
        similarity: (..., answer, answer), of `weighted`.
        weights: ω^r, one for each retriever of the pool.
    """
    omega = np.asarray(weights, dtype=np.float64)
    heard = np.flatnonzero(omega > rule.threshold)
    if not len(heard):
        heard = np.arange(len(omega))[:1]  # no weight is high enough: the pool's first wins
    scores = np.zeros(similarity.shape[:-1])
    if rule.zero_weight_votes:
        pooled = pool(similarity, rule)[..., heard]
    else:
        pooled = pool(similarity[..., heard[:, None], heard], rule)
    scores[..., heard] = np.where(omega[heard] > rule.threshold, omega[heard] * pooled, 0.0)
    best = np.round(scores[..., heard], DECIMALS).argmax(axis=-1)
    return Verdict(scores, heard[best])
