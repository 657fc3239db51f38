"""Semantic entropy: the number of meanings in the reader's replies; needs no gold (Kuhn et al.
2023).

    utility = -H,   H the entropy over clusters of N sampled replies that mean the same

It is negative, in nats, and 0 if all replies mean the same, so that more is better: a step's credit
is the agreement of the replies that it added. Replies are sampled, cut and weighed as SePer's are,
and shared with it. The meaning of replies that `max_tokens` cut off is unknown: the entropy is that
of the others, and the interval allows for every possible meaning of those cut off.

Caveat: a reader can be sure of a wrong answer, and evidence that names many candidates makes it
less sure of a right guess.

The interval follows from that of the largest cluster's mass p, Clopper and Pearson's at a level
that allows for N candidate clusters. As no cluster has more than p's upper bound, H is at least
that of the fewest possible clusters; and it is at most that of p and the rest in equal parts among
N - 1 clusters, which holds while the reader has no more than N meanings. Replies that were cut off
count as outside the largest cluster at p's lower bound and as inside it at its upper, and each of
them may be a cluster. It is wide: ten equal replies still allow an H of 1.7. `kuhn` has no
interval: it grows with every rare meaning that more replies add, without limit.

Source: semantic entropy (Kuhn et al. 2023; Farquhar et al. 2024). The interval is ours.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from math import log
from typing import Literal

from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Answered, Display, Entailment, Reader, SampleAllocation
from hopscope.runtime.texts.answers import exact_match
from hopscope.runtime.types import Measurement, Passage, Question
from hopscope.tracing.asking import asking, cut_off
from hopscope.tracing.asking.asking import Content, Unmeasured
from hopscope.tracing.asking.context import ShownContext, cut, nothing_shown
from hopscope.tracing.beliefs.answer_groups import grouped
from hopscope.tracing.beliefs.sampled_replies import Replies, ReplySampler
from hopscope.tracing.beliefs.semantic_entropy import (
    SemanticEstimator,
    masses,
    semantic_entropy,
)
from hopscope.tracing.pairs.clustering import Clustering, EquivalenceRule
from hopscope.tracing.pairs.relations import PairQuery, Relations, clusters
from hopscope.tracing.statistics import intervals
from hopscope.tracing.statistics.intervals import Interval

DISPLAY = Display("SemEnt", unit="nats")


@dataclass(frozen=True)
class SemanticEntropy:
    """A utility meter. All contexts go to the reader in one call, and the replies to all contexts
    to the entailment model together."""

    reader: Reader
    """Gives the replies."""
    entailment: Entailment
    """Decides which replies mean the same."""
    _: KW_ONLY
    entropy: SemanticEstimator = "rao"
    """The formula, see `tracing.beliefs.semantic_entropy`."""
    samples: int = 10
    """N; each is drawn from its own random stream."""
    temperature: float = 1.0
    """Sampling temperature; the weights always come from the raw distribution."""
    max_tokens: int = 64
    """The length limit of a reply, which also ends at a newline, "Question:" or "Context:"."""
    context_words: int = 0
    """Show only so many words of the context; 0 shows all of it, as SePer's option."""
    seed: int = 0
    """Seed of the sampling."""
    thinking: Literal["each", "once"] = "each"
    """For a reader that thinks: as SePer's option."""
    weight: Literal["lennorm", "raw_normalised", "uniform"] = "lennorm"
    """The weights of samples; `uniform` counts them."""
    equivalence: EquivalenceRule = "bi"
    """Decides whether two replies share a cluster."""
    threshold: float = 0.5
    """The τ of `threshold` equivalence."""
    clustering: Clustering = "first-match"
    prompts: str = ""
    """A set of prompts, or its folder, whose `meter/answer` asks for the replies."""

    name = "semantic_entropy"

    def __post_init__(self) -> None:
        """Raises UsageError for invalid options."""
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
        """The formula and its options, enough to reproduce a value."""
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
            "prompt": asking.prompt_name(self.prompts),
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
        return [each.measurement for each in self.measure_answered(question, evidences)]

    def measure_answered(
        self,
        question: Question,
        evidences: Sequence[tuple[Passage, ...]],
        allocation: SampleAllocation | None = None,
    ) -> list[Answered]:
        """As `measure`, with the replies grouped by their clusters. A credit budget gives this
        meter no allocation."""
        contexts = [cut(evidence, self.context_words) for evidence in evidences]
        requests = asking.requests(
            question.text,
            [context.passages for context in contexts],
            n=self.samples,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=self.seed,
            prompts=self.prompts,
        )
        replies: dict[Content, Replies | Unmeasured] = {}
        if self.thinking == "once":
            requests, unmeasured = asking.thought_once(self.reader, requests)
            replies |= unmeasured
        replies |= ReplySampler(self.reader, requests, meter=self.name).upto(
            self.samples, list(requests), self._weight
        )
        relations = Relations(self.entailment, question.text)
        meanings = relations.settle(
            {
                key: self._meanings(each, relations)
                for key, each in replies.items()
                if isinstance(each, Replies)
            }
        )
        keys = [asking.content(context.passages) for context in contexts]
        golds = question.answers
        return [
            _answered(
                self._measurement(replies[key], meanings.get(key, []), context),
                replies[key],
                meanings.get(key, []),
                golds,
            )
            for key, context in zip(keys, contexts, strict=True)
        ]

    def unseen(self, evidence: tuple[Passage, ...]) -> tuple[str, ...]:
        """Keys of the passages of which `context_words` leaves nothing."""
        return cut(evidence, self.context_words).dropped if self.context_words else ()

    def _meanings(self, replies: Replies, relations: Relations) -> PairQuery[list[int]]:
        return clusters(
            [sample.text.strip() for sample in replies.samples],
            relations,
            equivalence=self.equivalence,
            threshold=self.threshold,
            clustering=self.clustering,
        )

    def _measurement(
        self, replies: Replies | Unmeasured, clusters: Sequence[int], context: ShownContext
    ) -> Measurement:
        if not isinstance(replies, Unmeasured) and not any(
            reply.text.strip() for reply in replies.samples
        ):
            replies = Unmeasured("every reply is empty")
        if reason := nothing_shown(context, self.context_words):
            replies = Unmeasured(reason)
        if isinstance(replies, Unmeasured):
            return Measurement(
                value=None, reason=replies.reason, seed=self.seed, estimator=self.estimator
            )
        # Rounding hides that the weights may sum to slightly more or less than 1.
        value = round(semantic_entropy(replies.weights, clusters, self.entropy), 12)
        around = None
        if self.entropy != "kuhn":
            around = largest_cluster(float(masses(replies.weights, clusters).max()), replies)
        return Measurement(
            value=-value,
            n=len(replies.drawn),
            seed=self.seed,
            estimator=cut_off.told(
                asking.as_asked(self.estimator, replies.samples),
                len(replies.drawn) - len(replies.samples),
                len(replies.drawn),
            ),
            low=-max(around.high, value) if around else None,
            high=-min(around.low, value) if around else None,
            dropped=context.kept_back or None,
        )


def _answered(
    measurement: Measurement,
    replies: Replies | Unmeasured,
    clusters: Sequence[int],
    golds: Sequence[str],
) -> Answered:
    """The value with its clusters; a cluster is right if one of its replies equals a gold."""
    if measurement.value is None or isinstance(replies, Unmeasured):
        return Answered(measurement, None)
    texts = [reply.text for reply in replies.samples]
    right = [bool(exact_match(text, golds)) for text in texts]
    return Answered(measurement, grouped(texts, replies.weights.tolist(), right, clusters))


def largest_cluster(mass: float, replies: Replies) -> Interval:
    """The interval of the entropy, given the mass of the largest cluster of the replies."""
    drawn = replies.drawn or tuple(replies.weights.tolist())
    count = len(drawn)
    level = 1 - (1 - intervals.LEVEL) / count
    outside = min(mass, 1.0) * (1 - replies.cut)
    inside = min(1.0, outside + replies.cut)
    low, _ = intervals.weighted_mean(outside, drawn, level)
    _, high = intervals.weighted_mean(inside, drawn, level)
    # The upper bound is concave in p, with its maximum where all clusters have the same mass.
    even = min(max(1 / count, low), high)
    whole = int(1 / high)
    return Interval(
        _entropy([*[high] * whole, 1 - whole * high]),
        _entropy([even, 1 - even]) + (1 - even) * log(max(1, count - 1)),
    )


def _entropy(parts: Sequence[float]) -> float:
    return -sum([part * log(part) for part in parts if part > 0])


build = SemanticEntropy
