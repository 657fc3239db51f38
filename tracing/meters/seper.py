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

Source: eq. 6-11 and Algorithm 1; prompt, stop strings, weights and directions from the code.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from hopscope.runtime import answers
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Entailment, Reader
from hopscope.runtime.types import Measurement, Passage, Question
from hopscope.tracing import intervals
from hopscope.tracing.belief import Aggregation, Direction, Weighting
from hopscope.tracing.clustering import Clustering, Equivalence
from hopscope.tracing.meters import _asking
from hopscope.tracing.meters._asking import Content, Unmeasured
from hopscope.tracing.meters._beliefs import (
    Belief,
    Rules,
    canonical,
    likelihoods,
    statements,
    weigh,
)

Kind = Literal["soft", "hard"]


@dataclass(frozen=True)
class SePer:
    """A utility meter. All contexts of a call go to the reader in one call, and all pairs of
    texts to the entailment model in one; equal contexts are measured once."""

    reader: Reader
    """Whose belief it is."""
    entailment: Entailment
    """Says which replies mean the same as a gold or as each other."""
    _: KW_ONLY
    samples: int = 10
    """N; each is drawn from its own random stream."""
    temperature: float = 1.0
    """Of sampling; the weights always come from the raw distribution."""
    max_tokens: int = 64
    """Of a reply, which also ends at a newline, "Question:" or "Context:"."""
    seed: int = 0
    """Of the sampling."""
    kind: Kind = "soft"
    """`soft` is SePer-S, meter name `seper`; `hard` is SePer-H, `seper_hard`."""
    weight: Weighting = "lennorm"
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
    def estimator(self) -> str:
        """The formula and its options, enough to compute a value again."""
        rules = self._rules
        options: dict[str, object] = {
            "samples": self.samples,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "weight": rules.weight,
        }
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
            "entailment": self.entailment.name,
        }
        if rules.weight != "raw":
            options["interval"] = "clopper-pearson-kish"
        return f"seper-{self.kind}({', '.join(f'{k}={v}' for k, v in options.items())})"

    def measure(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Measurement]:
        """The belief in the golds on each evidence set, in [0, 1] but for `weight=raw`.

        Raises:
            ReaderError, EntailmentError: a model failed.
        """
        found = self._beliefs(question, evidences, clustered=self.kind == "hard")
        return [self._measurement(belief) for belief in found]

    def beliefs(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Belief | Unmeasured]:
        """The same with everything behind it: samples, weights, entailments, clusters, both kinds.

        Raises:
            ReaderError, EntailmentError: a model failed.
        """
        return self._beliefs(question, evidences, clustered=True)

    def _beliefs(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]], *, clustered: bool
    ) -> list[Belief | Unmeasured]:
        golds = answers.distinct(question.answers)
        if not golds:
            return [Unmeasured("no gold answer to believe in") for _ in evidences]
        asked = _asking.requests(
            question.text,
            evidences,
            n=self.samples,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=self.seed,
        )
        replies = _asking.generate(self.reader, list(asked.values()))
        sampled = {
            key: reply if isinstance(reply, Unmeasured) else canonical(reply)
            for key, reply in zip(asked, replies, strict=True)
        }
        pairs = dict.fromkeys(
            pair
            for samples in sampled.values()
            if not isinstance(samples, Unmeasured)
            for pair in statements(question.text, samples, golds, clustered=clustered)
        )
        relations = self.entailment.classify(list(pairs)) if pairs else []
        judged = {
            (pair.premise, pair.hypothesis): relation
            for pair, relation in zip(pairs, relations, strict=True)
        }
        found: dict[Content, Belief | Unmeasured] = {}
        for key, samples in sampled.items():
            if isinstance(samples, Unmeasured):
                found[key] = samples
                continue
            logprobs = likelihoods(samples, self._rules.weight)
            found[key] = (
                logprobs
                if isinstance(logprobs, Unmeasured)
                else weigh(
                    samples,
                    logprobs,
                    golds,
                    lambda premise, hypothesis: judged[premise, hypothesis],
                    self._rules,
                    clustered=clustered,
                )
            )
        return [found[_asking.content(evidence)] for evidence in evidences]

    def _measurement(self, belief: Belief | Unmeasured) -> Measurement:
        if isinstance(belief, Unmeasured):
            return Measurement(
                value=None, reason=belief.reason, seed=self.seed, estimator=self.estimator
            )
        value = belief.soft if belief.hard is None else belief.hard
        low = high = None
        if self._rules.weight != "raw":
            value = round(value, 12)  # a sum of weights that should be 1 may miss it
            low, high = intervals.weighted_mean(value, belief.weights)
        return Measurement(
            value=value,
            n=len(belief.samples),
            seed=self.seed,
            estimator=self.estimator,
            low=low,
            high=high,
        )


build = SePer
