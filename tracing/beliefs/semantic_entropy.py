"""The entropy over the meanings of a reader's replies, in nats. Four estimators, by name.

p(c) = Σ of the weights of the replies in cluster c. `rao` is the form in the public code of
semantic entropy and SePer, `kuhn` the Monte Carlo form printed in both papers (SePer eq. 5),
`discrete` counts replies and needs no log-probabilities (Farquhar et al. 2024), `predictive`
ignores meaning.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from hopscope.tracing.beliefs.belief import Floats

SemanticEstimator = Literal["rao", "kuhn", "discrete"]


def masses(weights: Sequence[float] | Floats, clusters: Sequence[int]) -> Floats:
    """p(c), the weight in each cluster, (c,)."""
    ids = np.asarray(clusters, dtype=np.intp)
    return np.bincount(ids, weights=np.asarray(weights)).astype(np.float64)


def rao(weights: Sequence[float] | Floats, clusters: Sequence[int]) -> float:
    """-Σ p(c) ln p(c)."""
    p = masses(weights, clusters)
    p = p[p > 0]
    return max(0.0, float(-(p * np.log(p)).sum()))


def kuhn(weights: Sequence[float] | Floats, clusters: Sequence[int]) -> float:
    """-(1/|C|) Σ ln p(c): every cluster counts the same."""
    p = masses(weights, clusters)
    return max(0.0, float(-np.log(p[p > 0]).mean()))


def discrete(clusters: Sequence[int]) -> float:
    """Entropy of the shares of replies."""
    return rao([1 / len(clusters)] * len(clusters), clusters)


def predictive(logprobs: Sequence[Sequence[float]]) -> float:
    """-mean over replies of their mean token log-probability."""
    return float(-np.mean([float(np.mean(tokens)) for tokens in logprobs]))


def semantic_entropy(
    weights: Sequence[float] | Floats,
    clusters: Sequence[int],
    estimator: SemanticEstimator = "rao",
) -> float:
    """The entropy by the named estimator; `weights` sum to 1 and `discrete` ignores them."""
    if estimator == "discrete":
        return discrete(clusters)
    return (rao if estimator == "rao" else kuhn)(weights, clusters)
