"""The metrics of SePer's Table 2: SePer and its rivals, on the same sampled replies.

Each metric scores the reader's answers from a context, higher is better; a context's utility is its
score minus the closed-book score. Metrics of answers are means over the replies, as in the paper;
perplexity and entropy count negatively. Two models judge answers: the embedded one of answer
equivalence, which is no language model, and the reader itself, which compares its most common reply
with the gold. A reader that does not follow this prompt accepts equal words only, as exact match.

Source: Dai et al. 2025 (arXiv 2503.01478), section 4.1.2.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.runtime.encoders import naming
from hopscope.runtime.errors import CapabilityError, EntailmentError, UsageError
from hopscope.runtime.ports import UtilityMeter
from hopscope.runtime.types import Measurement, Passage, Question
from hopscope.tracing.answer_metrics import (
    bertscore,
    bleu,
    equivalence,
    exact_match,
    rouge_l,
)
from hopscope.tracing.asking.asking import Unmeasured
from hopscope.tracing.beliefs.beliefs import Belief
from hopscope.tracing.beliefs.semantic_entropy import predictive
from hopscope.tracing.entailments import equivalence as embedded
from hopscope.tracing.entailments import judge
from hopscope.tracing.meters.gold_logprob import Scale
from hopscope.tracing.meters.grogu import key_tokens
from hopscope.tracing.scoring.metric import AnswerMetric, Case

SOFT, HARD = "ΔSePer-S", "ΔSePer-H"
GOLD: Mapping[str, Scale] = {
    "gold log-probability": "logprob",
    "gold probability": "probability",
}
"""The scales of `gold_logprob` by their names in tables."""
JUDGE = "LLM judge (the reader)"

Contexts = Sequence[tuple[Passage, ...]]


class ContextScores(NamedTuple):
    """Scores of one metric for contexts of one question."""

    values: list[float | None]
    """The score of each context; None if unmeasured."""
    reason: str = ""
    """The reason for the first None."""


@dataclass(frozen=True)
class RivalScores:
    """Metrics of contexts by their name in tables; a text is the reason for a missing one."""

    of_belief: Mapping[str, Callable[[Belief], float | None]]
    of_contexts: Mapping[str, UtilityMeter]
    of_answers: Mapping[str, AnswerMetric | str]
    judge: AnswerMetric
    """Judges only the most common reply to a context, as it costs a call."""

    @property
    def names(self) -> list[str]:
        """Names in the order of the paper's table, Hopscope's own first."""
        return [*self.of_belief, *self.of_contexts, *self.of_answers, JUDGE]

    def tell(
        self, question: Question, contexts: Contexts, beliefs: Sequence[Belief | Unmeasured]
    ) -> dict[str, ContextScores]:
        """Each metric's scores of the contexts, which gave the beliefs."""
        told = {name: of_beliefs(beliefs, of) for name, of in self.of_belief.items()}
        for name, meter in self.of_contexts.items():
            found = meter.measure(question, contexts)
            missing = next((m.reason for m in found if m.reason), "")
            told[name] = ContextScores([m.value for m in found], missing)
        for name, metric in self.of_answers.items():
            told[name] = (
                ContextScores([None] * len(beliefs), metric)
                if isinstance(metric, str)
                else _of_answers(question, beliefs, metric)
            )
        told[JUDGE] = _judged(question, beliefs, self.judge)
        return told


def make(inputs: SuiteInputs) -> RivalScores:
    """All metrics; BLEU and BERTScore need their extras."""
    metrics: dict[str, Callable[[], AnswerMetric]] = {
        "exact match": exact_match.build,
        "ROUGE-L": rouge_l.build,
        "BLEU": bleu.build,
        "BERTScore (MiniLM)": _bertscore,
        "answer equivalence (embedded model)": lambda: equivalence.build(embedded.build()),
    }
    return RivalScores(
        of_belief={
            SOFT: lambda belief: belief.soft,
            HARD: lambda belief: belief.hard,
            "perplexity": lambda belief: _mean(belief, key_tokens.perplexity),
            "entropy": lambda belief: _mean(belief, lambda tokens: predictive([tokens])),
            "semantic entropy": lambda belief: -belief.semantic_entropy(),
        },
        of_contexts={name: inputs.gold_logprob(scale) for name, scale in GOLD.items()},
        of_answers={name: _there(build) for name, build in metrics.items()},
        judge=equivalence.build(judge.build(reader=inputs.reader)),
    )


def _there(build: Callable[[], AnswerMetric]) -> AnswerMetric | str:
    try:
        return build()
    except UsageError as missing:
        return str(missing)


def _bertscore() -> AnswerMetric:
    return bertscore.build(model=naming.PACKAGED)


def of_beliefs(
    beliefs: Sequence[Belief | Unmeasured], of: Callable[[Belief], float | None]
) -> ContextScores:
    """The score of each belief."""
    reason = next((found.reason for found in beliefs if isinstance(found, Unmeasured)), "")
    values = [None if isinstance(found, Unmeasured) else of(found) for found in beliefs]
    return ContextScores(values, reason or "the replies have no tokens")


def _mean(belief: Belief, negative: Callable[[Sequence[float]], float]) -> float | None:
    """Minus the mean over the replies that have tokens."""
    found = [negative(reply.logprobs) for reply in belief.samples if reply.logprobs]
    return -fmean(found) if found else None


def _of_answers(
    question: Question, beliefs: Sequence[Belief | Unmeasured], metric: AnswerMetric
) -> ContextScores:
    """The mean over a context's replies; each text is judged once."""
    counts: list[Counter[str]] = [
        Counter() if isinstance(b, Unmeasured) else _texts(b) for b in beliefs
    ]
    texts = list(dict.fromkeys(text for count in counts for text in count))
    found = dict(zip(texts, metric.score([Case(question, t) for t in texts]), strict=True))
    reason = next((m.reason for m in found.values() if m.reason), "")
    return ContextScores([_weighted(count, found) for count in counts], reason)


def _judged(
    question: Question, beliefs: Sequence[Belief | Unmeasured], judge: AnswerMetric
) -> ContextScores:
    """The judgement of a context's most common reply; none by a reader that cannot judge."""
    try:
        judged = judge.score([Case(question, _commonest(belief)) for belief in beliefs])
    except EntailmentError as error:
        if not isinstance(error.__cause__, CapabilityError):
            raise
        return ContextScores([None] * len(beliefs), str(error))
    reason = next((m.reason for m in judged if m.reason), "")
    return ContextScores([m.value for m in judged], reason)


def _weighted(count: Counter[str], found: Mapping[str, Measurement]) -> float | None:
    values = [found[text].value for text in count.elements()]
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _texts(belief: Belief) -> Counter[str]:
    return Counter(reply.text.strip() for reply in belief.samples)


def _commonest(belief: Belief | Unmeasured) -> str | None:
    return None if isinstance(belief, Unmeasured) else _texts(belief).most_common(1)[0][0]
