"""From the replies to one prompt to a belief: weights, agreement with the golds, clusters."""

from collections.abc import Sequence
from itertools import combinations
from math import exp
from typing import NamedTuple

import numpy as np

from hopscope.runtime.ports import Probabilities
from hopscope.runtime.types import Generation, Record
from hopscope.tracing.asking.asking import Unmeasured
from hopscope.tracing.beliefs import belief, unasked
from hopscope.tracing.beliefs.belief import Aggregation, Direction, Weighting
from hopscope.tracing.beliefs.semantic_entropy import SemanticEstimator, semantic_entropy
from hopscope.tracing.pairs.clustering import Clustering, EquivalenceRule, equivalent
from hopscope.tracing.pairs.relations import PairQuery, Relations, alike, clusters
from hopscope.tracing.statistics.intervals import UnseenReplies


class BeliefOptions(NamedTuple):
    """The options of SePer for the step from replies to a belief."""

    weight: Weighting
    direction: Direction
    golds_soft: Aggregation
    golds_hard: Aggregation
    equivalence: EquivalenceRule
    """Decides whether two replies share a cluster."""
    match: EquivalenceRule
    """Decides whether a cluster's first reply agrees with a gold."""
    threshold: float
    """The τ of `threshold` equivalence."""
    clustering: Clustering
    tolerance: float = 0.0
    """The most by which the pairs left out may change SePer-S or SePer-H."""


class Agreement(NamedTuple):
    """A belief, and the replies that it counts."""

    value: float
    agrees: tuple[bool, ...]
    """Whether each reply agrees with a gold, with at least half of the probability."""
    gap: float = 0.0
    """The most that pairs left out could add. In the value they count as no agreement."""


class Belief(Record):
    """A reader's belief in the golds on one evidence set, with all it was computed from."""

    samples: tuple[Generation, ...]
    """Replies in canonical order: by text, then log-probabilities. Enumerated replies are distinct
    and in the order the search reached them."""
    weights: tuple[float, ...]
    """One for each sample; for an enumerated reply its probability, given that it is not cut
    off."""
    golds: tuple[str, ...]
    """Aliases that differ after normalisation, in canonical order."""
    reply_to_gold: tuple[tuple[Probabilities, ...], ...]
    """Does the reply entail the gold? (sample, gold)"""
    gold_to_reply: tuple[tuple[Probabilities, ...], ...]
    """Does the gold entail the reply? (sample, gold)"""
    agreement: tuple[tuple[float, ...], ...]
    """The agreement of the reply with the gold, by the chosen direction. (sample, gold)"""
    soft: float
    """SePer-S."""
    clusters: tuple[int, ...]
    """Cluster id of each sample."""
    matches: tuple[tuple[bool, ...], ...]
    """Whether the cluster's first member says the same as the gold. (cluster, gold)"""
    hard: float
    """SePer-H."""
    uncovered: float | None = None
    """Probability of the replies that an enumeration did not reach; None for samples."""
    drawn: tuple[float, ...] = ()
    """The weights of all replies, including those cut off."""
    cut_off: float = 0.0
    """The share of this weight on replies that `max_tokens` cut off. They are not among the
    samples, because their meaning is unknown."""
    cut: str | None = None
    """Key of the passage that lost the end of its text to `context_words`."""
    dropped: tuple[str, ...] = ()
    """Keys of the passages that were not shown because of `context_words`."""
    unseen: UnseenReplies | None = None
    """The bounds on replies that no sample showed; None for an enumeration."""

    def semantic_entropy(self, estimator: SemanticEstimator = "rao") -> float:
        """The entropy over the replies' clusters, in nats, with weights normalised to sum to 1."""
        total = sum(self.weights)
        return semantic_entropy([w / total for w in self.weights], self.clusters, estimator)


def canonical(samples: Sequence[Generation]) -> tuple[Generation, ...]:
    """The samples in an order that does not depend on the order of sampling."""
    return tuple(sorted(samples, key=lambda s: (s.text.strip(), s.logprobs, s.token_ids)))


def likelihoods(
    samples: Sequence[Generation], weight: Weighting, meter: str = "seper"
) -> list[tuple[float, ...]] | Unmeasured:
    """The token log-probabilities that weigh each sample.

    An empty reply has that of its end token. A reply that ended before any token, with no recorded
    likelihood, gets the mean weight of the others. `meter` is the one whose option a reason names.
    """
    if weight == "uniform":
        return [() for _ in samples]
    known = [s.logprobs or (() if s.end_logprob is None else (s.end_logprob,)) for s in samples]
    if any(not logprobs and s.text.strip() for logprobs, s in zip(known, samples, strict=True)):
        return Unmeasured(
            f"the reader gives no log-probabilities; -o {meter}.weight=uniform needs none"
        )
    means = [float(np.mean(logprobs)) for logprobs in known if logprobs]
    if not means:
        return Unmeasured("every reply is empty and none has a log-probability")
    return [logprobs or (float(np.mean(means)),) for logprobs in known]


def unseen(
    samples: Sequence[Generation],
    logprobs: Sequence[tuple[float, ...]],
    weight: Weighting,
    *,
    own: bool,
) -> UnseenReplies | None:
    """The bounds on replies that no sample showed; None where all replies weigh the same.

    The probability of the sampled replies is known, and so is that of all others. Replies that
    differ show the spread of weights: an unseen one weighs at most as much as the heaviest of them.
    Copies of one reply show no spread: an unseen one weighs at most as much as a certain reply.

    Args:
        logprobs: as `likelihoods` gives them.
        own: whether the samples were drawn from the distribution that gave the log-probabilities,
            at temperature 1.
    """
    if weight == "uniform":
        return None
    total = [sum(tokens) for tokens in logprobs]
    if weight == "lennorm":
        total = [each / len(tokens) for each, tokens in zip(total, logprobs, strict=True)]
    weights = [exp(each) for each in total]
    chances = {(sample.text, sample.token_ids): _probability(sample) for sample in samples}
    mass = max(0.0, 1 - sum(chances.values())) if own else 1.0
    # The likelihood of one unseen token sequence is at most the remaining probability.
    certain = 1.0 if weight == "lennorm" else mass
    heaviest = max(weights) if len(chances) > 1 else certain
    return UnseenReplies(mass, max(1.0, heaviest * len(weights) / sum(weights)))


def _probability(sample: Generation) -> float:
    """The probability of a reply, including its end where that likelihood is known."""
    end = () if sample.end_logprob is None else (sample.end_logprob,)
    return exp(sum((*sample.logprobs, *end))) if sample.logprobs or end else 0.0


def soft(
    samples: Sequence[Generation],
    weights: belief.Floats,
    golds: Sequence[str],
    relations: Relations,
    options: BeliefOptions,
) -> PairQuery[Agreement]:
    """SePer-S alone. The relation from gold to reply is classified only where it can change the
    agreement: it cannot where the reply entails the gold with certainty.

    A tolerance leaves out the lightest replies, then of the others the second direction where it
    can add least.
    """
    texts = [sample.text.strip() for sample in samples]
    masses = unasked.masses(texts, weights)
    light = unasked.lightest(masses, options.tolerance)
    asked = np.array([text not in light for text in texts])
    shape = len(texts), len(golds)
    pairs = [(text, gold) for text in texts for gold in golds if text not in light]
    yield pairs
    forward = np.zeros(shape)
    forward[asked] = np.reshape([relations(*pair).entailment for pair in pairs], (-1, len(golds)))
    # The least and the greatest agreement that the pairs classified leave possible, (sample, gold).
    least = belief.agreement(forward, np.zeros(shape), options.direction)
    most = np.where(
        asked[:, None], belief.agreement(forward, np.ones(shape), options.direction), 1.0
    )
    if options.direction != "r2g":
        reach = dict(zip(texts, (most - least).max(axis=1).tolist(), strict=True))
        costs = {text: mass * reach[text] for text, mass in masses.items() if text not in light}
        left = options.tolerance - sum(masses[text] for text in light)
        spared = light | unasked.lightest(costs, left)
        both = [
            (i, g)
            for i, text in enumerate(texts)
            for g in range(len(golds))
            if text not in spared and forward[i, g] < 1
        ]
        turned = [(golds[g], texts[i]) for i, g in both]
        yield turned
        backward = np.zeros(shape)
        for place, pair in zip(both, turned, strict=True):
            backward[place] = relations(*pair).entailment
        known = np.array([text not in spared for text in texts])[:, None]
        least = belief.agreement(forward, backward, options.direction)
        most = np.where(known, least, most)
    value = belief.soft(weights, least, options.golds_soft)
    agrees = (least.max(axis=1) >= 0.5).tolist()
    return Agreement(value, tuple(agrees), belief.soft(weights, most, options.golds_soft) - value)


def hard(
    samples: Sequence[Generation],
    weights: belief.Floats,
    golds: Sequence[str],
    relations: Relations,
    options: BeliefOptions,
) -> PairQuery[Agreement]:
    """SePer-H alone.

    A reply counts by the matches of its cluster's first member with the golds. So clusters matter
    only where a reply means the same as an earlier one with other matches; and replies after the
    last of these change nothing. A tolerance leaves out the last replies, which cannot change the
    clusters of others.
    """
    texts = [sample.text.strip() for sample in samples]
    masses = unasked.masses(texts, weights)
    light = unasked.last(masses, options.tolerance)
    distinct = [text for text in dict.fromkeys(texts) if text not in light]
    pairs = [(text, gold) for text in distinct for gold in golds]
    same = yield from alike(pairs, relations, options.match, options.threshold)
    count = len(golds)
    matches = [same[i : i + count] for i in range(0, len(same), count)]  # (distinct text, gold)
    if options.golds_hard == "union":
        matches = [[any(row)] for row in matches]
    differ = [(i, j) for i, j in combinations(range(len(distinct)), 2) if matches[i] != matches[j]]
    pairs = [(distinct[i], distinct[j]) for i, j in differ]
    same = yield from alike(pairs, relations, options.equivalence, options.threshold)
    end = max((j + 1 for (_, j), equal in zip(differ, same, strict=True) if equal), default=0)
    ids = yield from clusters(
        distinct[:end],
        relations,
        equivalence=options.equivalence,
        threshold=options.threshold,
        clustering=options.clustering,
    )
    firsts = [*map(ids.index, ids), *range(end, len(distinct))]
    first_of = dict(zip(distinct, firsts, strict=True))
    # Those left out share one more cluster, which agrees with no gold.
    matches.append([False] * len(matches[0]) if matches else [False])
    ids = [first_of.get(text, len(distinct)) for text in texts]
    value = belief.hard(weights, ids, np.array(matches), options.golds_hard)
    gap = float(sum(masses[text] for text in light))
    return Agreement(value, tuple(any(matches[i]) for i in ids), gap)


def believe(
    samples: tuple[Generation, ...],
    weights: belief.Floats,
    golds: tuple[str, ...],
    relations: Relations,
    options: BeliefOptions,
) -> PairQuery[Belief]:
    """SePer-S and SePer-H with all intermediate results, from samples in order and their
    weights."""
    texts = [sample.text.strip() for sample in samples]
    yield [pair for text in texts for gold in golds for pair in ((text, gold), (gold, text))]
    forward = [[relations(text, gold) for gold in golds] for text in texts]
    backward = [[relations(gold, text) for gold in golds] for text in texts]
    agreement = belief.agreement(_entailment(forward), _entailment(backward), options.direction)
    ids = yield from clusters(
        texts,
        relations,
        equivalence=options.equivalence,
        threshold=options.threshold,
        clustering=options.clustering,
    )
    firsts = [ids.index(number) for number in range(max(ids) + 1)]
    matches = [
        [
            equivalent(forward[i][g], backward[i][g], options.match, options.threshold)
            for g in range(len(golds))
        ]
        for i in firsts
    ]  # (cluster, gold)
    return Belief(
        samples=samples,
        weights=tuple(weights.tolist()),
        golds=golds,
        reply_to_gold=tuple(map(tuple, forward)),
        gold_to_reply=tuple(map(tuple, backward)),
        agreement=tuple(map(tuple, agreement.tolist())),
        soft=belief.soft(weights, agreement, options.golds_soft),
        clusters=tuple(ids),
        matches=tuple(map(tuple, matches)),
        hard=belief.hard(weights, ids, np.array(matches), options.golds_hard),
    )


def _entailment(rows: Sequence[Sequence[Probabilities]]) -> belief.Floats:
    return np.array([[p.entailment for p in row] for row in rows])
