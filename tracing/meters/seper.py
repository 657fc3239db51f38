"""SePer: the reader's belief in the gold answer, from N sampled replies (Dai et al. 2025).

    belief = Σ_i w_i · [reply i says the same as a gold]

What the replies weigh and what "the same" means are options; the defaults are those of the
public code with its error for several golds mended. `soft` (SePer-S) takes the probability of
entailment for each reply, `hard` (SePer-H) groups replies by meaning and asks whether a group
matches. ΔSePer, the worth of evidence, is the belief with it minus the belief without: that is
`tracing.credit`.

Caveat: with the default `weight=lennorm` the belief does not converge to the reader's
probability of a right answer but to E[e^l·same]/E[e^l], with l the mean token log-probability
of a reply; `weight=uniform` at temperature 1 converges to the probability.

`method=enumerate` gives that limit without sampling: the replies are searched best-first with
their exact probabilities, and the interval [value, value + what the search did not reach] is
certain. It is deterministic and its n is the number of distinct replies found. For SePer-H the
clusters are those of the replies in the order found, which replies found later cannot change.

With `width`, samples are drawn until the interval is as narrow as asked for; `tracing.looks`
says why that leaves the interval its level.

What a reply that `max_tokens` cut off would have said is not known. The value is that of the other
replies; for the interval those cut off count as wrong at its lower end and as right at its upper.
The estimator tells how many they are; where they are more than half, nothing is measured.

Source: eq. 6-11 and Algorithm 1; prompt, stop strings, weights and directions from the code.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeVar

from hopscope.runtime import answers
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Entailment, Reader
from hopscope.runtime.types import Measurement, Passage, Question
from hopscope.tracing import cut_off, intervals, looks
from hopscope.tracing.belief import Aggregation, Direction, Weighting
from hopscope.tracing.clustering import Clustering, Equivalence
from hopscope.tracing.meters import _asking, _replies
from hopscope.tracing.meters._asking import Content, Unmeasured
from hopscope.tracing.meters._beliefs import Belief, Rules
from hopscope.tracing.meters._context import Shown, cut
from hopscope.tracing.meters._judging import Judge, Kind, Level
from hopscope.tracing.meters._replies import Replies

Method = Literal["sample", "enumerate"]
Found = TypeVar("Found", Belief, Level)


@dataclass(frozen=True)
class SePer:
    """A utility meter. All contexts of a call go to the reader in one call, and the entailment
    model is asked about the texts of all together; equal contexts are measured once."""

    reader: Reader
    """Whose belief it is."""
    entailment: Entailment
    """Says which replies mean the same as a gold or as each other."""
    _: KW_ONLY
    method: Method = "sample"
    """How the reader's replies are come by; `enumerate` needs one that can branch."""
    samples: int = 10
    """N, or with `width` the most; each is drawn from its own random stream."""
    width: float | None = None
    """Of the 95 % interval at which to stop sampling; None draws all samples."""
    temperature: float = 1.0
    """Of sampling; the weights always come from the raw distribution. At 0 there is one reply, the
    greedy one, which is no sample: n is 1 and there is no interval."""
    bound: float = 0.01
    """Enumerate until no more than this probability is uncovered, or"""
    budget: int = 1000
    """until this many next-token distributions were read for one context."""
    max_tokens: int = 64
    """Of a reply, which also ends at a newline, "Question:" or "Context:"."""
    context_words: int = 512
    """The context ends after so many words, as in the paper's code; 0 shows all of it."""
    seed: int = 0
    """Of the sampling."""
    thinking: Literal["each", "once"] = "each"
    """Of a reader that thinks: whether each sample has a thought of its own, or all answers are
    drawn behind one thought, the first sample's. docs/metrics.md says what each estimates."""
    kind: Kind = "soft"
    """`soft` is SePer-S, meter name `seper`; `hard` is SePer-H, `seper_hard`."""
    weight: Weighting = "lennorm"
    """Of samples; an enumerated reply weighs its probability."""
    direction: Direction = "max"
    """Of entailment between reply and gold; soft only."""
    golds: Aggregation | None = None
    """None is `max` for soft and `union` for hard."""
    equivalence: Equivalence = "bi"
    """What puts two replies into one cluster; hard only."""
    match: Equivalence = "loose"
    """What makes a cluster's first reply agree with a gold; hard only."""
    threshold: float = 0.5
    """The τ of `threshold` equivalence."""
    clustering: Clustering = "first-match"

    def __post_init__(self) -> None:
        """Raises UsageError for options that no value can come of."""
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

    @property
    def name(self) -> str:
        return "seper" if self.kind == "soft" else "seper_hard"

    @property
    def _rules(self) -> Rules:
        return Rules(
            weight=self.weight,
            direction=self.direction,
            golds_soft=self.golds or "max",
            golds_hard=self.golds or "union",
            equivalence=self.equivalence,
            match=self.match,
            threshold=self.threshold,
            clustering=self.clustering,
        )

    @property
    def _sizes(self) -> tuple[int, ...]:
        """At how many samples to look whether they are enough."""
        if self.temperature == 0:
            return (1,)
        several = self.width is not None and callable(getattr(self.reader, "more", None))
        return looks.sizes(self.samples) if several else (self.samples,)

    @property
    def estimator(self) -> str:
        """The formula and its options, enough to compute a value again."""
        rules = self._rules
        options: dict[str, object] = {"max_tokens": self.max_tokens}
        if self.method == "enumerate":
            options |= {"method": "enumerate", "bound": self.bound, "budget": self.budget}
        else:
            options |= {"samples": self._sizes[-1], "temperature": self.temperature}
            options |= {"weight": rules.weight}
        if self.width is not None:
            options |= {"width": self.width, "looks": "-".join(map(str, self._sizes))}
        if self.kind == "soft":
            options |= {"direction": rules.direction, "golds": rules.golds_soft}
        else:
            options |= {
                "golds": rules.golds_hard,
                "equivalence": rules.equivalence,
                "match": rules.match,
                "clustering": rules.clustering,
            }
            if "threshold" in (rules.equivalence, rules.match):
                options["threshold"] = rules.threshold
        options |= {
            "normaliser": "squad",
            "prompt": "short_answer",
            "context_words": self.context_words,
            "entailment": self.entailment.name,
        }
        if self.thinking == "once":
            options["thinking"] = "once"
        if self.method == "enumerate":
            options["interval"] = "certain"
        elif rules.weight != "raw" and self.temperature > 0:
            options["interval"] = "clopper-pearson-kish-unseen"
        return f"seper-{self.kind}({', '.join(f'{k}={v}' for k, v in options.items())})"

    def measure(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Measurement]:
        """The belief in the golds on each evidence set, in [0, 1] but for `weight=raw`.

        Only pairs of texts that can change the value are asked about.

        Raises:
            ReaderError, EntailmentError: a model failed.
        """
        contexts = [cut(evidence, self.context_words) for evidence in evidences]
        found = self._judged(question, contexts, lambda judge, r: judge.levels(r, self.kind))
        return [
            self._measurement(level, context)
            for level, context in zip(found, contexts, strict=True)
        ]

    def beliefs(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Belief | Unmeasured]:
        """The same with everything behind it: replies, weights, entailments, clusters, both kinds,
        and which passages were not shown.

        Raises:
            ReaderError, EntailmentError: a model failed.
        """
        contexts = [cut(evidence, self.context_words) for evidence in evidences]
        found = self._judged(question, contexts, Judge.beliefs)
        return [
            belief
            if isinstance(belief, Unmeasured)
            else belief.model_copy(update={"cut": context.cut, "dropped": context.dropped})
            for belief, context in zip(found, contexts, strict=True)
        ]

    def _judged(
        self,
        question: Question,
        contexts: Sequence[Shown],
        by: Callable[
            [Judge, Mapping[Content, Replies | Unmeasured]], dict[Content, Found | Unmeasured]
        ],
    ) -> list[Found | Unmeasured]:
        golds = answers.distinct(question.answers)
        if not golds:
            return [Unmeasured("no gold answer to believe in") for _ in contexts]
        asked = _asking.requests(
            question.text,
            [context.passages for context in contexts],
            n=self._sizes[-1],
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=self.seed,
        )
        judge = Judge(self.entailment, question.text, golds, self._rules)
        found: dict[Content, Found | Unmeasured] = {}
        if self.thinking == "once":
            asked, unmeasured = _asking.thought_once(self.reader, asked)
            found |= unmeasured
        if self.method == "enumerate":
            replies = _replies.enumerated(self.reader, asked, bound=self.bound, budget=self.budget)
            found |= by(judge, replies)
        else:
            drawn = _replies.Sampled(self.reader, asked)
            open_contexts = list(asked)
            for size in self._sizes if open_contexts else ():
                replies = drawn.upto(size, open_contexts, self.weight)
                found |= by(judge, replies)
                open_contexts = [key for key in replies if self._too_wide(found[key])]
                if not open_contexts:
                    break
        return [
            self._explained(found[_asking.content(context.passages)], context)
            for context in contexts
        ]

    def _explained(self, found: Found | Unmeasured, context: Shown) -> Found | Unmeasured:
        """A reason why nothing was measured also tells what `context_words` dropped."""
        if not isinstance(found, Unmeasured) or not context.dropped:
            return found
        dropped = ", ".join(context.dropped)
        return Unmeasured(f"{found.reason}; context_words had dropped {dropped}")

    def _too_wide(self, found: Belief | Level | Unmeasured) -> bool:
        if self.width is None or isinstance(found, Unmeasured):
            return False
        if isinstance(found, Belief):
            value = found.soft if self.kind == "soft" else found.hard
            found = Level(
                value,
                found.drawn or found.weights,
                found.uncovered,
                found.unseen,
                found.samples,
                found.cut_off,
            )
        low, high = self._interval(found)
        return low is None or high is None or high - low > self.width

    def _interval(self, level: Level) -> tuple[float | None, float | None]:
        value = self._value(level)
        if level.uncovered is not None:
            return value, min(1.0, value + level.uncovered)
        if self.weight == "raw" or self.temperature == 0:
            return None, None
        each = looks.level_each(len(self._sizes))
        # What was cut off counts as wrong for the lower end and as right for the upper.
        wrong = value * (1 - level.cut)
        right = min(1.0, wrong + level.cut)
        low, _ = intervals.weighted_mean(wrong, level.weights, each, unseen=level.unseen)
        _, high = intervals.weighted_mean(right, level.weights, each, unseen=level.unseen)
        return low, high

    def _value(self, level: Level) -> float:
        # A sum of weights that should be 1 may miss it.
        raw = self.weight == "raw" and self.method == "sample"
        return level.value if raw else round(level.value, 12)

    def _measurement(self, level: Level | Unmeasured, context: Shown) -> Measurement:
        seed = self.seed if self.method == "sample" else None
        if isinstance(level, Unmeasured):
            return Measurement(value=None, reason=level.reason, seed=seed, estimator=self.estimator)
        low, high = self._interval(level)
        drawn, estimator = len(level.weights), _asking.as_asked(self.estimator, level.samples)
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


build = SePer
