"""The arithmetic of SePer: from log-probabilities and entailments to the belief in the golds.

Pure functions of arrays; the calls to models are in `meters.seper`. Axes are named beside the
arrays: i runs over samples (replies), g over gold aliases, c over clusters.

Source: SePer (Dai et al. 2025), eq. 6-10 and Algorithm 1, and its public code. The two differ:
the paper weights a reply by its likelihood, unnormalised, the code by a softmax over the mean
token log-probabilities. The code also lays entailments out gold by gold and reads them reply by
reply, so its results for several golds are wrong; here every array has its axes.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Weighting = Literal["lennorm", "raw", "raw_normalised", "uniform"]
"""`lennorm` softmax of mean token log-probabilities (code); `raw` the likelihood itself (paper);
`raw_normalised` the same, made to sum to 1; `uniform` 1/N, the plain Monte Carlo estimate."""
Direction = Literal["max", "r2g", "half"]
"""`r2g` reply entails gold (paper); `max` the larger of both directions (code);
`half` the larger of r2g and the mean of both (in the code, disabled)."""
Aggregation = Literal["max", "mean", "union"]
"""Over golds: the best one; their mean (paper, eq. 10); a reply may agree with any of them."""


def weights(logprobs: Sequence[Sequence[float]], weighting: Weighting = "lennorm") -> Floats:
    """The weight of each reply, (i,). All but `raw` sum to 1.

    Args:
        logprobs: of each reply, ln p of its tokens without stop tokens; at least one each, but
            for `uniform`.
    """
    if weighting == "uniform":
        return np.full(len(logprobs), 1 / len(logprobs))
    if weighting == "lennorm":
        return _softmax(np.array([float(np.mean(tokens)) for tokens in logprobs]))
    total = np.array([float(np.sum(tokens)) for tokens in logprobs])
    return np.exp(total) if weighting == "raw" else _softmax(total)


def _softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum())


def agreement(reply_to_gold: Floats, gold_to_reply: Floats, direction: Direction = "max") -> Floats:
    """The agreement of each reply with each gold, (i, g), from P(entailment) both ways."""
    if direction == "r2g":
        return reply_to_gold
    other = gold_to_reply if direction == "max" else (reply_to_gold + gold_to_reply) / 2
    return np.maximum(reply_to_gold, other)


def soft(weights: Floats, agreement: Floats, golds: Aggregation = "max") -> float:
    """SePer-S: the weighted mean agreement.

    Args:
        weights: (i,)
        agreement: (i, g)
    """
    return _aggregate(weights, agreement, golds)


def hard(
    weights: Floats, clusters: Sequence[int], matches: NDArray[np.bool_], golds: Aggregation
) -> float:
    """SePer-H: the weight of the clusters that match a gold.

    Args:
        weights: (i,)
        clusters: id of each reply's cluster, (i,); ids count from 0.
        matches: whether each cluster matches each gold, (c, g).
    """
    return _aggregate(weights, matches[np.asarray(clusters, dtype=np.intp)].astype(float), golds)


def _aggregate(weights: Floats, values: Floats, golds: Aggregation) -> float:
    """One number from the values (i, g)."""
    if golds == "union":
        return float(weights @ values.max(axis=1))
    masses = weights @ values  # (g,)
    return float(masses.max() if golds == "max" else masses.mean())
