"""SePer: the reader's belief in the gold answer, from N sampled replies (Dai et al. 2025).

    belief = Σ_i w_i · [reply i says the same as a gold]

The weights of replies and the meaning of "the same" are options; the defaults are those of the
public code without its error for several golds. `soft` (SePer-S) takes the probability of
entailment for each reply, `hard` (SePer-H) clusters replies by meaning and matches clusters with
golds. ΔSePer, the utility of evidence, is the belief with it minus the belief without:
`tracing.games.coalitions` subtracts, with the interval of `tracing.statistics.intervals` (MOVER).

Caveat: with the default `weight=lennorm` the belief does not converge to the reader's
probability of a right answer but to E[e^l·same]/E[e^l], with l the mean token log-probability
of a reply; `weight=uniform` at temperature 1 converges to the probability.

`method=enumerate` gives that limit without sampling: a best-first search over replies with their
exact probabilities. Replies it did not reach count as wrong in the value and as right at the upper
end of the interval, which is certain. It is deterministic and its n is the number of distinct
replies. SePer-H clusters them in the order the search reached them, so that later replies cannot
change the clusters.

With `width`, sampling stops when the interval is narrow enough; `tracing.statistics.looks` says why
the interval keeps its level.

With `tolerance`, pairs of texts that together can change the belief by no more are not classified:
for SePer-S those of the lightest replies, then the second direction where it can add least; for
SePer-H those of the last replies in the order of clustering, which cannot change other clusters.
They count as no agreement in the value and as agreement at the upper end of the interval, so that
the interval holds the value with all pairs.

The meaning of a reply that `max_tokens` cut off is unknown. The value is that of the other replies;
in the interval those cut off count as wrong at its lower end and as right at its upper, whether
replies are sampled or enumerated. The estimator names their number; where they are more than half
(of an enumeration: of its probability), nothing is measured.

Source: eq. 6-11 and Algorithm 1; prompt, stop strings, weights and directions from the code.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeVar

from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import (
    Answered,
    Display,
    Entailment,
    MoreSamples,
    Reader,
    SampleAllocation,
)
from hopscope.runtime.texts import answers
from hopscope.runtime.types import GenerationRequest, Measurement, Passage, Question
from hopscope.tracing.asking import asking, cut_off
from hopscope.tracing.asking.asking import Content, Unmeasured
from hopscope.tracing.asking.context import ShownContext, cut, nothing_shown
from hopscope.tracing.beliefs import sampled_replies
from hopscope.tracing.beliefs.answer_groups import grouped
from hopscope.tracing.beliefs.belief import Aggregation, Direction, Weighting
from hopscope.tracing.beliefs.beliefs import Belief, BeliefOptions
from hopscope.tracing.beliefs.judging import BeliefKind, BeliefLevel, BeliefScorer
from hopscope.tracing.beliefs.sampled_replies import Replies
from hopscope.tracing.pairs.clustering import Clustering, EquivalenceRule
from hopscope.tracing.statistics import intervals, looks

DISPLAY = Display("SePer", unit="probability", gold=True, full_bar=1.0)
Method = Literal["sample", "enumerate"]
Result = TypeVar("Result", Belief, BeliefLevel)
NO_GOLD = Unmeasured("no gold answer to believe in")
NOT_ALLOCATED = Unmeasured("the credit budget left no reply for this evidence")


@dataclass(frozen=True)
class SePer:
    """A utility meter. All contexts of a call go to the reader in one call, and their texts to the
    entailment model together; equal contexts are measured once."""

    reader: Reader
    """Gives the replies."""
    entailment: Entailment
    """Decides which replies mean the same as a gold or as each other."""
    _: KW_ONLY
    method: Method = "sample"
    """The source of the replies; `enumerate` needs a reader that can branch."""
    samples: int = 10
    """N, or with `width` the maximum; each is drawn from its own random stream."""
    width: float | None = None
    """The width of the 95 % interval at which sampling stops; None draws all samples."""
    temperature: float = 1.0
    """Sampling temperature; the weights always come from the raw distribution. At 0 there is one
    reply, the greedy one, which is not a sample: n is 1 and there is no interval."""
    bound: float = 0.01
    """Enumerate until at most this probability is uncovered, or"""
    budget: int = 1000
    """until this many next-token distributions were read for one context."""
    max_tokens: int = 64
    """The length limit of a reply, which also ends at a newline, "Question:" or "Context:"."""
    context_words: int = 0
    """Show only so many words of the context (the paper's code: 512); 0 shows all of it, and leaves
    unmeasured what does not fit the reader."""
    seed: int = 0
    """Seed of the sampling."""
    thinking: Literal["each", "once"] = "each"
    """For a reader that thinks: `each` sample has its own thought, or all answers follow one
    thought, the first sample's. docs/metrics.md says what each estimates."""
    kind: BeliefKind = "soft"
    """`soft` is SePer-S, meter name `seper`; `hard` is SePer-H, `seper_hard`."""
    weight: Weighting = "lennorm"
    """The weights of samples; an enumerated reply weighs its probability."""
    direction: Direction = "max"
    """The direction of entailment between reply and gold; soft only."""
    golds: Aggregation | None = None
    """The aggregation over golds; None is `max` for soft and `union` for hard."""
    equivalence: EquivalenceRule = "bi"
    """Decides whether two replies share a cluster; hard only."""
    match: EquivalenceRule = "loose"
    """Decides whether a cluster's first reply agrees with a gold; hard only."""
    threshold: float = 0.5
    """The τ of `threshold` equivalence."""
    clustering: Clustering = "first-match"
    tolerance: float = 0.0
    """Leave out pairs of texts that together change the belief by at most this much; 0 compares
    all that can change it."""
    prompts: str = ""
    """A set of prompts, or its folder, whose `meter/answer` asks for the replies."""

    def __post_init__(self) -> None:
        """Raises UsageError for invalid options."""
        if self.samples < 1 or self.max_tokens < 1:
            raise UsageError("SePer needs at least one sample of at least one token")
        if self.temperature < 0 or not 0 <= self.threshold <= 1:
            raise UsageError("SePer needs a temperature of at least 0 and a threshold in [0, 1]")
        if self.context_words < 0:
            raise UsageError("SePer needs context_words of 0 or more; 0 shows the whole context")
        if self.method == "enumerate":
            if not 0 <= self.bound < 1 or self.budget < 1:
                raise UsageError("SePer needs a bound in [0, 1) and a budget of at least 1 token")
            if self.temperature != 1 or self.width is not None:
                raise UsageError(
                    "SePer with method=enumerate takes the reader's own distribution to a bound: "
                    "leave temperature at 1 and give bound in the place of width"
                )
        if self.width is not None and (not 0 < self.width <= 1 or self.weight == "raw"):
            raise UsageError("SePer needs a width in (0, 1], and raw weights have no interval")
        if self.width is not None and self.temperature == 0:
            raise UsageError(
                "SePer at temperature 0 has one reply and no interval: leave width out, or sample"
            )

        if not 0 <= self.tolerance < 1:
            raise UsageError("SePer needs a tolerance in [0, 1)")
        if self.tolerance and (self.weight == "raw" or self.temperature == 0):
            raise UsageError(
                "SePer widens its interval by what a tolerance leaves out, and raw weights and "
                "temperature 0 have no interval: leave tolerance out"
            )
        if self.width is not None and self.tolerance >= self.width:
            raise UsageError("SePer needs a tolerance below width, which includes it")

    @property
    def name(self) -> str:
        return "seper" if self.kind == "soft" else "seper_hard"

    @property
    def _belief_options(self) -> BeliefOptions:
        return BeliefOptions(
            weight=self.weight,
            direction=self.direction,
            golds_soft=self.golds or "max",
            golds_hard=self.golds or "union",
            equivalence=self.equivalence,
            match=self.match,
            threshold=self.threshold,
            clustering=self.clustering,
            tolerance=self.tolerance,
        )

    @property
    def _sizes(self) -> tuple[int, ...]:
        """The numbers of samples after which to check the interval's width."""
        if self.temperature == 0:
            return (1,)
        several = self.width is not None and isinstance(self.reader, MoreSamples)
        return looks.sizes(self.samples) if several else (self.samples,)

    @property
    def estimator(self) -> str:
        """The formula and its options, enough to reproduce a value."""
        belief_options = self._belief_options
        options: dict[str, object] = {"max_tokens": self.max_tokens}
        if self.method == "enumerate":
            options |= {"method": "enumerate", "bound": self.bound, "budget": self.budget}
        else:
            options |= {"samples": self._sizes[-1], "temperature": self.temperature}
            options |= {"weight": belief_options.weight}
        if self.width is not None:
            options |= {"width": self.width, "looks": "-".join(map(str, self._sizes))}
        if self.kind == "soft":
            options |= {"direction": belief_options.direction, "golds": belief_options.golds_soft}
        else:
            options |= {
                "golds": belief_options.golds_hard,
                "equivalence": belief_options.equivalence,
                "match": belief_options.match,
                "clustering": belief_options.clustering,
            }
            if "threshold" in (belief_options.equivalence, belief_options.match):
                options["threshold"] = belief_options.threshold
        options |= {
            "normaliser": "squad",
            "prompt": asking.prompt_name(self.prompts),
            "context_words": self.context_words,
            "entailment": self.entailment.name,
        }
        if self.tolerance:
            options["tolerance"] = self.tolerance
        if self.thinking == "once":
            options["thinking"] = "once"
        if self.method == "enumerate":
            options["interval"] = "certain"
        elif belief_options.weight != "raw" and self.temperature > 0:
            options["interval"] = "clopper-pearson-kish-unseen"
        return f"seper-{self.kind}({', '.join(f'{k}={v}' for k, v in options.items())})"

    def measure(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Measurement]:
        """The belief in the golds on each evidence set, in [0, 1] but for `weight=raw`.

        Only pairs of texts that can change the value are classified.

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
        """As `measure`, or as `measure_by`, with the sampled answers grouped by meaning."""
        if allocation is not None:
            return self._allocated(question, evidences, allocation)
        contexts = [cut(evidence, self.context_words) for evidence in evidences]
        levels = self._scored(question, contexts, lambda scorer, r: scorer.levels(r, self.kind))
        return [
            _answered(self._measurement(level, context), level)
            for level, context in zip(levels, contexts, strict=True)
        ]

    def requests(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[GenerationRequest]:
        """The samples of the first look; empty where others depend on replies before them."""
        known = self.method == "sample" and self.thinking == "each"
        if not known or not answers.distinct(question.answers):
            return []
        contexts = [cut(evidence, self.context_words) for evidence in evidences]
        asked = self._requests(question, contexts).values()
        return [request.model_copy(update={"n": self._sizes[0]}) for request in asked]

    def measure_by(
        self,
        question: Question,
        evidences: Sequence[tuple[Passage, ...]],
        allocation: SampleAllocation,
    ) -> list[Measurement]:
        """As `measure`, with as many replies to each evidence set as the allocation asks for. The
        intervals hold at every number of replies together, so that it may go by them.

        Raises:
            UsageError: the options leave no choice of the number of replies.
            ReaderError, EntailmentError: a model failed.
        """
        return [each.measurement for each in self._allocated(question, evidences, allocation)]

    def _allocated(
        self,
        question: Question,
        evidences: Sequence[tuple[Passage, ...]],
        allocation: SampleAllocation,
    ) -> list[Answered]:
        self._check_allocated()
        contexts = [cut(evidence, self.context_words) for evidence in evidences]
        golds = answers.distinct(question.answers)
        if not golds:
            return [_answered(self._measurement(NO_GOLD, c), NO_GOLD) for c in contexts]
        keys = [asking.content(context.passages) for context in contexts]
        requests = self._requests(question, contexts)
        scorer = BeliefScorer(self.entailment, question.text, golds, self._belief_options)
        sampler = sampled_replies.ReplySampler(self.reader, requests)
        results: dict[Content, BeliefLevel | Unmeasured] = {}

        def measured() -> list[Measurement | None]:
            return [
                self._measurement(self._explained(results[key], context), context, allocation.looks)
                if key in results
                else None
                for key, context in zip(keys, contexts, strict=True)
            ]

        while wanted := allocation.next(measured()):
            largest: dict[Content, int] = {}
            for place, size in wanted.items():  # evidence sets that are shown alike share replies
                largest[keys[place]] = max(size, largest.get(keys[place], 0))
            by_size: dict[int, list[Content]] = {}
            for key, size in largest.items():
                if size > sampler.size(key) and not isinstance(results.get(key), Unmeasured):
                    by_size.setdefault(size, []).append(key)
            for size, sampled in by_size.items():
                replies = sampler.upto(size, sampled, self.weight)
                results |= scorer.levels(replies, self.kind)
        return [
            _answered(value or self._measurement(NOT_ALLOCATED, context), results.get(key))
            for value, key, context in zip(measured(), keys, contexts, strict=True)
        ]

    def beliefs(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Belief | Unmeasured]:
        """The same with all intermediate results: replies, weights, entailments, clusters, both
        kinds, and the passages that were not shown. All pairs are classified, whatever the
        tolerance.

        Raises:
            ReaderError, EntailmentError: a model failed.
        """
        contexts = [cut(evidence, self.context_words) for evidence in evidences]
        beliefs = self._scored(question, contexts, BeliefScorer.beliefs)
        return [
            belief
            if isinstance(belief, Unmeasured)
            else belief.model_copy(update={"cut": context.cut, "dropped": context.dropped})
            for belief, context in zip(beliefs, contexts, strict=True)
        ]

    def unseen(self, evidence: tuple[Passage, ...]) -> tuple[str, ...]:
        """Keys of the passages of which `context_words` leaves nothing."""
        return cut(evidence, self.context_words).dropped if self.context_words else ()

    def _scored(
        self,
        question: Question,
        contexts: Sequence[ShownContext],
        by: Callable[
            [BeliefScorer, Mapping[Content, Replies | Unmeasured]],
            dict[Content, Result | Unmeasured],
        ],
    ) -> list[Result | Unmeasured]:
        golds = answers.distinct(question.answers)
        if not golds:
            return [NO_GOLD for _ in contexts]
        requests = self._requests(question, contexts)
        scorer = BeliefScorer(self.entailment, question.text, golds, self._belief_options)
        results: dict[Content, Result | Unmeasured] = {}
        if self.thinking == "once":
            requests, unmeasured = asking.thought_once(self.reader, requests)
            results |= unmeasured
        if self.method == "enumerate":
            replies = sampled_replies.enumerated(
                self.reader, requests, bound=self.bound, budget=self.budget
            )
            results |= by(scorer, replies)
        else:
            sampler = sampled_replies.ReplySampler(self.reader, requests)
            open_contexts = list(requests)
            for size in self._sizes if open_contexts else ():
                replies = sampler.upto(size, open_contexts, self.weight)
                results |= by(scorer, replies)
                open_contexts = [key for key in replies if self._too_wide(results[key])]
                if not open_contexts:
                    break
        return [
            self._explained(results[asking.content(context.passages)], context)
            for context in contexts
        ]

    def _requests(
        self, question: Question, contexts: Sequence[ShownContext]
    ) -> dict[Content, GenerationRequest]:
        return asking.requests(
            question.text,
            [context.passages for context in contexts],
            n=self._sizes[-1],
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=self.seed,
            prompts=self.prompts,
        )

    def _check_allocated(self) -> None:
        if self.method != "sample" or self.temperature == 0 or self.width is not None:
            raise UsageError(
                f"a credit budget chooses the number of {self.name}'s samples: leave out method, "
                "width and temperature 0"
            )
        if self.thinking == "once":
            raise UsageError("a credit budget needs thinking=each: samples are drawn one by one")
        if not isinstance(self.reader, MoreSamples):
            raise UsageError(
                f"a credit budget draws samples one by one, which {self.reader.name} does not do"
            )

    def _explained(self, result: Result | Unmeasured, context: ShownContext) -> Result | Unmeasured:
        """The result, unless nothing of the evidence was shown; a reason also names the passages
        that `context_words` dropped."""
        if reason := nothing_shown(context, self.context_words):
            return Unmeasured(reason)
        if not isinstance(result, Unmeasured) or not context.dropped:
            return result
        dropped = ", ".join(context.dropped)
        return Unmeasured(f"{result.reason}; context_words had dropped {dropped}")

    def _too_wide(self, result: Belief | BeliefLevel | Unmeasured) -> bool:
        if self.width is None or isinstance(result, Unmeasured):
            return False
        if isinstance(result, Belief):
            value = result.soft if self.kind == "soft" else result.hard
            result = BeliefLevel(
                value,
                result.drawn or result.weights,
                result.uncovered,
                result.unseen,
                result.samples,
                result.cut_off,
            )
        low, high = self._interval(result)
        return low is None or high is None or high - low > self.width

    def _interval(
        self, level: BeliefLevel, looked: int | None = None
    ) -> tuple[float | None, float | None]:
        """Args:
        looked: the number of looks at the interval; by default those of `width`.
        """
        value = self._value(level)
        # Replies that were cut off count as wrong for the lower end and as right for the upper, and
        # so do pairs that the tolerance left out.
        wrong = value * (1 - level.cut)
        right = min(1.0, (value + level.gap) * (1 - level.cut) + level.cut)
        if level.uncovered is not None:
            return wrong, min(1.0, right + level.uncovered)
        if self.weight == "raw" or self.temperature == 0:
            return None, None
        each = looks.level_each(looked or len(self._sizes))
        low, _ = intervals.weighted_mean(wrong, level.weights, each, unseen=level.unseen)
        _, high = intervals.weighted_mean(right, level.weights, each, unseen=level.unseen)
        return low, high

    def _value(self, level: BeliefLevel) -> float:
        # Rounding hides that the weights may sum to slightly more or less than 1.
        raw = self.weight == "raw" and self.method == "sample"
        return level.value if raw else round(level.value, 12)

    def _measurement(
        self,
        level: BeliefLevel | Unmeasured,
        context: ShownContext,
        looked: int | None = None,
    ) -> Measurement:
        seed = self.seed if self.method == "sample" else None
        if isinstance(level, Unmeasured):
            return Measurement(value=None, reason=level.reason, seed=seed, estimator=self.estimator)
        low, high = self._interval(level, looked)
        drawn, estimator = len(level.weights), asking.as_asked(self.estimator, level.samples)
        return Measurement(
            value=self._value(level),
            n=drawn,
            seed=seed,
            estimator=cut_off.told(estimator, drawn - len(level.samples), drawn),
            low=low,
            high=high,
            certain=self.method == "enumerate" and low is not None,
            dropped=context.kept_back or None,
        )


def _answered(measurement: Measurement, level: BeliefLevel | Unmeasured | None) -> Answered:
    """The value with the answers it was computed from."""
    if measurement.value is None or not isinstance(level, BeliefLevel) or level.known is None:
        return Answered(measurement, None)
    texts = [reply.text for reply in level.samples]
    return Answered(measurement, grouped(texts, level.known.weights.tolist(), level.agrees))


build = SePer
