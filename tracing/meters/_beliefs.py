"""From the replies to one prompt to a belief: weights, agreement with the golds, clusters."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hopscope.runtime.ports import Probabilities, Statement
from hopscope.runtime.types import Generation, Record
from hopscope.tracing import belief
from hopscope.tracing.belief import Aggregation, Direction, Weighting
from hopscope.tracing.clustering import Clustering, Equivalence, cluster, equivalent
from hopscope.tracing.meters._asking import Unmeasured
from hopscope.tracing.semantic_entropy import SemanticEstimator, semantic_entropy

NOTHING = Probabilities(0.0, 1.0, 0.0)
"""What a reply without text says about anything, and anything about it."""


class Rules(NamedTuple):
    """The options of SePer that say how replies become a belief."""

    weight: Weighting
    direction: Direction
    golds_soft: Aggregation
    golds_hard: Aggregation
    equivalence: Equivalence
    """Of replies, for the clusters."""
    match: Equivalence
    """Of a cluster's first reply and a gold."""
    threshold: float
    """The τ of `threshold` equivalence."""
    clustering: Clustering


class Belief(Record):
    """A reader's belief in the golds on one evidence set, with all it was computed from."""

    samples: tuple[Generation, ...]
    """Replies in canonical order: by text, then log-probabilities. Enumerated ones are distinct
    and stand in the order they were found."""
    weights: tuple[float, ...]
    """Of each sample; of an enumerated reply its probability."""
    golds: tuple[str, ...]
    """Aliases that differ after normalisation, in canonical order."""
    reply_to_gold: tuple[tuple[Probabilities, ...], ...]
    """Does the reply entail the gold? (sample, gold)"""
    gold_to_reply: tuple[tuple[Probabilities, ...], ...]
    """Does the gold entail the reply? (sample, gold)"""
    agreement: tuple[tuple[float, ...], ...]
    """How far the reply says the same as the gold, by the direction asked for. (sample, gold)"""
    soft: float
    """SePer-S."""
    clusters: tuple[int, ...] | None = None
    """Cluster id of each sample; None where clusters were not asked for."""
    matches: tuple[tuple[bool, ...], ...] | None = None
    """Whether the cluster's first member says the same as the gold. (cluster, gold)"""
    hard: float | None = None
    """SePer-H; None where clusters were not asked for."""
    uncovered: float | None = None
    """Probability of the replies that an enumeration did not reach; None for samples."""
    cut: str | None = None
    """Key of the passage that lost the end of its text to `context_words`."""
    dropped: tuple[str, ...] = ()
    """Keys of the passages that were not shown because of `context_words`."""

    def semantic_entropy(self, estimator: SemanticEstimator = "rao") -> float | None:
        """How many meanings the replies have, in nats; weights are made to sum to 1. None where
        clusters were not asked for."""
        if self.clusters is None:
            return None
        total = sum(self.weights)
        return semantic_entropy([w / total for w in self.weights], self.clusters, estimator)


Judged = Callable[[str, str], Probabilities]
"""What premise says about hypothesis."""


def canonical(samples: Sequence[Generation]) -> tuple[Generation, ...]:
    """The samples in an order that does not depend on the order they were drawn in."""
    return tuple(sorted(samples, key=lambda s: (s.text.strip(), s.logprobs, s.token_ids)))


def likelihoods(
    samples: Sequence[Generation], weight: Weighting
) -> list[tuple[float, ...]] | Unmeasured:
    """The token log-probabilities that weigh each sample.

    An empty reply has those of its end token. One that was stopped before any token, whose
    likelihood nobody recorded, weighs as much as the others do on average.
    """
    if weight == "uniform":
        return [() for _ in samples]
    known = [s.logprobs or (() if s.end_logprob is None else (s.end_logprob,)) for s in samples]
    if any(not logprobs and s.text.strip() for logprobs, s in zip(known, samples, strict=True)):
        return Unmeasured("the reader gives no log-probabilities; weight=uniform needs none")
    means = [float(np.mean(logprobs)) for logprobs in known if logprobs]
    if not means:
        return Unmeasured("every reply is empty and none has a log-probability")
    return [logprobs or (float(np.mean(means)),) for logprobs in known]


def statements(
    question: str, samples: Sequence[Generation], golds: Sequence[str], *, clustered: bool
) -> Iterator[Statement]:
    """All pairs the belief needs, both directions; a reply without text has none."""
    texts = _texts(samples)
    for text in texts:
        for gold in golds:
            yield Statement(question, text, gold)
            yield Statement(question, gold, text)
    if clustered:
        for one in texts:
            yield from (Statement(question, one, other) for other in texts if other != one)


def _texts(samples: Sequence[Generation]) -> list[str]:
    texts = dict.fromkeys(sample.text.strip() for sample in samples)
    return [text for text in texts if text]


def weigh(
    samples: tuple[Generation, ...],
    weights: belief.Floats,
    golds: tuple[str, ...],
    judged: Judged,
    rules: Rules,
    *,
    clustered: bool,
) -> Belief:
    """The belief, from samples in order, their weights and the answers to `statements`."""
    texts = [sample.text.strip() for sample in samples]
    forward = [[_judge(judged, text, gold) for gold in golds] for text in texts]
    backward = [[_judge(judged, gold, text) for gold in golds] for text in texts]
    agreement = belief.agreement(_entailment(forward), _entailment(backward), rules.direction)
    found = Belief(
        samples=samples,
        weights=tuple(weights.tolist()),
        golds=golds,
        reply_to_gold=tuple(map(tuple, forward)),
        gold_to_reply=tuple(map(tuple, backward)),
        agreement=tuple(map(tuple, agreement.tolist())),
        soft=belief.soft(weights, agreement, rules.golds_soft),
    )
    if not clustered:
        return found
    ids = meanings(
        samples,
        judged,
        equivalence=rules.equivalence,
        threshold=rules.threshold,
        clustering=rules.clustering,
    )
    firsts = [ids.index(number) for number in range(max(ids) + 1)]
    matches = [
        [
            equivalent(forward[i][g], backward[i][g], rules.match, rules.threshold)
            for g in range(len(golds))
        ]
        for i in firsts
    ]  # (cluster, gold)
    return found.model_copy(
        update={
            "clusters": ids,
            "matches": tuple(map(tuple, matches)),
            "hard": belief.hard(weights, ids, np.array(matches), rules.golds_hard),
        }
    )


def meanings(
    samples: Sequence[Generation],
    judged: Judged,
    *,
    equivalence: Equivalence,
    threshold: float,
    clustering: Clustering,
) -> tuple[int, ...]:
    """The cluster of each sample, from the answers to `statements`."""
    texts = [sample.text.strip() for sample in samples]
    distinct = list(dict.fromkeys(texts))

    def equal(i: int, j: int) -> bool:
        one, other = distinct[i], distinct[j]
        return equivalent(
            _judge(judged, one, other), _judge(judged, other, one), equivalence, threshold
        )

    of_text = dict(zip(distinct, cluster(len(distinct), equal, clustering), strict=True))
    return tuple(of_text[text] for text in texts)


def _judge(judged: Judged, premise: str, hypothesis: str) -> Probabilities:
    return judged(premise, hypothesis) if premise and hypothesis else NOTHING


def _entailment(rows: Sequence[Sequence[Probabilities]]) -> belief.Floats:
    return np.array([[p.entailment for p in row] for row in rows])
