"""Semantic entropy: how many meanings the reader's replies have; needs no gold (Kuhn et al. 2023).

    utility = -H,   H the entropy over clusters of N sampled replies that mean the same

It is negative, in nats and at most 0, where all replies mean the same, so that more is better: the
credit of a step is by how much it made the replies agree. Replies are drawn, cut and weighed as
SePer's are, and shared with it; of replies that `max_tokens` cut off nobody knows the meaning, so
the entropy is that of the others.

Caveat: a reader can be sure of something wrong, and evidence that names many candidates makes it
less sure of a right guess.

The interval follows from that of the largest cluster's mass p, Clopper and Pearson's at a level
that allows for N clusters having been candidates. No cluster having more than p's upper bound, H is
at least that of as few clusters as can be; and it is at most that of p and the rest in equal parts
among N - 1 clusters, so that holds while the reader has no more than N meanings. It is wide: ten
equal replies still allow an H of 1.7. `kuhn` has none: with more replies it grows with every rare
meaning found and has no limit.

Source: semantic entropy (Kuhn et al. 2023; Farquhar et al. 2024). The interval is ours.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from math import log
from typing import Literal

from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Entailment, Reader
from hopscope.runtime.types import Measurement, Passage, Question
from hopscope.tracing import cut_off, intervals
from hopscope.tracing.clustering import Clustering, Equivalence
from hopscope.tracing.intervals import Interval
from hopscope.tracing.meters import _asking
from hopscope.tracing.meters._asking import Content, Unmeasured
from hopscope.tracing.meters._context import Shown, cut
from hopscope.tracing.meters._relations import Asking, Relations, clusters
from hopscope.tracing.meters._replies import Replies, Sampled
from hopscope.tracing.semantic_entropy import SemanticEstimator, masses, semantic_entropy


@dataclass(frozen=True)
class SemanticEntropy:
    """A utility meter. All contexts go to the reader in one call, and the entailment model is asked
    about the replies to all contexts together."""

    reader: Reader
    """Whose replies they are."""
    entailment: Entailment
    """Says which replies mean the same."""
    _: KW_ONLY
    entropy: SemanticEstimator = "rao"
    """The formula, see `tracing.semantic_entropy`."""
    samples: int = 10
    """N; each is drawn from its own random stream."""
    temperature: float = 1.0
    """Of sampling; the weights always come from the raw distribution."""
    max_tokens: int = 64
    """Of a reply, which also ends at a newline, "Question:" or "Context:"."""
    context_words: int = 512
    """The context ends after so many words; 0 shows all of it."""
    seed: int = 0
    """Of the sampling."""
    thinking: Literal["each", "once"] = "each"
    """Of a reader that thinks, as SePer's."""
    weight: Literal["lennorm", "raw_normalised", "uniform"] = "lennorm"
    """Of samples; `discrete` counts them."""
    equivalence: Equivalence = "bi"
    """What puts two replies into one cluster."""
    threshold: float = 0.5
    """The τ of `threshold` equivalence."""
    clustering: Clustering = "first-match"

    name = "semantic_entropy"

    def __post_init__(self) -> None:
        """Raises UsageError for options that no value can come of."""
        if self.samples < 2 or self.max_tokens < 1:
            raise UsageError("semantic entropy needs at least two samples of at least one token")
        if self.temperature <= 0 or not 0 <= self.threshold <= 1:
            raise UsageError(
                "semantic entropy needs a temperature above 0 and a threshold in [0, 1]"
            )
        if self.context_words < 0:
            raise UsageError("semantic entropy needs context_words of 0 or more; 0 shows all")

    @property
    def estimator(self) -> str:
        """The formula and its options, enough to compute a value again."""
        options: dict[str, object] = {
            "entropy": self.entropy,
            "samples": self.samples,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "weight": self._weight,
            "equivalence": self.equivalence,
            "clustering": self.clustering,
        }
        if self.equivalence == "threshold":
            options["threshold"] = self.threshold
        options |= {
            "prompt": "short_answer",
            "context_words": self.context_words,
            "entailment": self.entailment.name,
        }
        if self.thinking == "once":
            options["thinking"] = "once"
        if self.entropy != "kuhn":
            options["interval"] = "largest-cluster"
        return f"-semantic_entropy({', '.join(f'{k}={v}' for k, v in options.items())})"

    @property
    def _weight(self) -> Literal["lennorm", "raw_normalised", "uniform"]:
        return "uniform" if self.entropy == "discrete" else self.weight

    def measure(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Measurement]:
        """The negative entropy of the replies to each evidence set, in nats.

        Raises:
            ReaderError, EntailmentError: a model failed.
        """
        contexts = [cut(evidence, self.context_words) for evidence in evidences]
        asked = _asking.requests(
            question.text,
            [context.passages for context in contexts],
            n=self.samples,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=self.seed,
        )
        found: dict[Content, Replies | Unmeasured] = {}
        if self.thinking == "once":
            asked, unmeasured = _asking.thought_once(self.reader, asked)
            found |= unmeasured
        found |= Sampled(self.reader, asked, meter=self.name).upto(
            self.samples, list(asked), self._weight
        )
        relations = Relations(self.entailment, question.text)
        meanings = relations.settle(
            {
                key: self._meanings(replies, relations)
                for key, replies in found.items()
                if isinstance(replies, Replies)
            }
        )
        keys = [_asking.content(context.passages) for context in contexts]
        return [
            self._measurement(found[key], meanings.get(key, []), context)
            for key, context in zip(keys, contexts, strict=True)
        ]

    def _meanings(self, replies: Replies, relations: Relations) -> Asking[list[int]]:
        return clusters(
            [sample.text.strip() for sample in replies.samples],
            relations,
            equivalence=self.equivalence,
            threshold=self.threshold,
            clustering=self.clustering,
        )

    def _measurement(
        self, replies: Replies | Unmeasured, clusters: Sequence[int], context: Shown
    ) -> Measurement:
        if not isinstance(replies, Unmeasured) and not any(
            reply.text.strip() for reply in replies.samples
        ):
            replies = Unmeasured("every reply is empty")
        if isinstance(replies, Unmeasured):
            return Measurement(
                value=None, reason=replies.reason, seed=self.seed, estimator=self.estimator
            )
        # A sum of weights that should be 1 may miss it.
        value = round(semantic_entropy(replies.weights, clusters, self.entropy), 12)
        around = None
        if self.entropy != "kuhn":
            around = largest_cluster(float(masses(replies.weights, clusters).max()), replies)
        return Measurement(
            value=-value,
            n=len(replies.samples),
            seed=self.seed,
            estimator=cut_off.told(
                _asking.as_asked(self.estimator, replies.samples),
                len(replies.drawn) - len(replies.samples),
                len(replies.drawn),
            ),
            low=-max(around.high, value) if around else None,
            high=-min(around.low, value) if around else None,
            dropped=context.kept_back or None,
        )


def largest_cluster(mass: float, replies: Replies) -> Interval:
    """Between which entropies lies that of a reader whose replies fell so much into one cluster?"""
    count = len(replies.samples)
    level = 1 - (1 - intervals.LEVEL) / count
    low, high = intervals.weighted_mean(min(mass, 1.0), replies.weights.tolist(), level)
    # The upper bound is concave in p, with its maximum where all clusters are alike.
    alike = min(max(1 / count, low), high)
    whole = int(1 / high)
    return Interval(
        _entropy([*[high] * whole, 1 - whole * high]),
        _entropy([alike, 1 - alike]) + (1 - alike) * log(max(1, count - 1)),
    )


def _entropy(parts: Sequence[float]) -> float:
    return -sum([part * log(part) for part in parts if part > 0])


build = SemanticEntropy
