"""Agreement of an entailment with human judgements of answers.

Accuracy and F1 of right answers by system, in percent as in the papers. Intervals are percentile
bootstraps over questions, because answers to one question are dependent; all systems share the
resampled questions, so their mean has an interval, too.

Source of the protocol: SePer, table 1 (arXiv 2503.01478).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopscope.lab.equivalence.belief_rules import Rule, chances
from hopscope.lab.equivalence.data import Judged
from hopscope.lab.equivalence.reliability import Reliability, reliability
from hopscope.runtime.ports import Entailment
from hopscope.runtime.texts.answers import accuracy
from hopscope.runtime.types import Question
from hopscope.tracing.scoring.correctness import Answered
from hopscope.tracing.scoring.metric import AnswerMetric, Case
from hopscope.tracing.statistics.intervals import Interval, quantiles

Flags = NDArray[np.bool_]
THRESHOLD = 0.5
"""By default, answers with a higher probability of being right count as judged right."""
RESAMPLES = 2000


class HumanAgreement(NamedTuple):
    """Agreement on the answers of one system, or its mean over all."""

    f1: float
    """Percent."""
    accuracy: float
    """Percent."""
    n: int
    """Answers."""
    f1_interval: Interval
    accuracy_interval: Interval


class Mistake(NamedTuple):
    """An answer that the entailment and the person judge differently."""

    system: str
    answered: Answered
    right: bool
    """The person's verdict."""
    probability: float


class Evaluation(NamedTuple):
    """The evaluation of one entailment on one file."""

    systems: dict[str, HumanAgreement]
    mean: HumanAgreement
    """The mean over systems; `n` counts all answers."""
    mistakes: list[Mistake]
    """The surest first."""
    reliability: Reliability
    """Of the probabilities of all answers."""


class LexicalMatch:
    """The papers' baseline: the normalised answer contains a normalised gold, also inside words. A
    gold that normalises to nothing matches no answer."""

    def correctness(self, answered: Sequence[Answered]) -> list[float]:
        """1 or 0 for each answer."""
        return [accuracy(row.answer, row.golds) for row in answered]


class ByMetric:
    """A metric of answers; what it cannot measure is 0."""

    def __init__(self, metric: AnswerMetric) -> None:
        self.metric = metric

    def correctness(self, answered: Sequence[Answered]) -> list[float]:
        """The score of each answer."""
        cases = [
            Case(Question(text=row.question, answers=tuple(row.golds)), row.answer)
            for row in answered
        ]
        return [found.value or 0.0 for found in self.metric.score(cases)]


Judge = Entailment | LexicalMatch | ByMetric


def evaluate(
    judged: Sequence[Judged],
    judge: Judge,
    *,
    rule: Rule = "entails",
    threshold: float = THRESHOLD,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Evaluation:
    """Compare an entailment with the human judgements.

    Args:
        rule: from relations to the probability of an answer; only entailments have one.
        threshold: a higher probability or score counts as right.

    Raises:
        EntailmentError, ReaderError: the model failed.
    """
    systems = list(judged[0].answers)
    answered = [row.answered(system) for row in judged for system in systems]
    if isinstance(judge, LexicalMatch | ByMetric):
        values = judge.correctness(answered)
    else:
        values = chances(judge, answered, rule)
    shape = len(judged), len(systems)
    probabilities = np.array(values).reshape(shape)
    found: Flags = probabilities > threshold
    right: Flags = np.array([[row.right[system] for system in systems] for row in judged])
    scores = _scores(found[None], right[None])[0]
    drawn = np.random.default_rng(seed).integers(len(judged), size=(resamples, len(judged)))
    sampled = np.concatenate([_scores(found[i], right[i]) for i in np.array_split(drawn, 50)])
    agreements = [
        _agreement(scores[:, s], sampled[:, :, s], len(judged)) for s in range(len(systems))
    ]
    mistakes = [
        Mistake(system, row.answered(system), row.right[system], float(probabilities[i, s]))
        for i, row in enumerate(judged)
        for s, system in enumerate(systems)
        if found[i, s] != right[i, s]
    ]
    return Evaluation(
        dict(zip(systems, agreements, strict=True)),
        _agreement(scores.mean(axis=1), sampled.mean(axis=2), len(judged) * len(systems)),
        sorted(mistakes, key=lambda mistake: -abs(mistake.probability - threshold)),
        reliability(probabilities, right, drawn),
    )


def _scores(found: Flags, right: Flags) -> NDArray[np.float64]:
    """F1 and accuracy in percent, (draw, 2, system), of (draw, question, system)."""
    hits = (found & right).sum(axis=1)
    missed = (found != right).sum(axis=1)
    # Without right answers on either side, agreement is full.
    f1 = np.where(hits + missed > 0, 2 * hits / np.maximum(2 * hits + missed, 1), 1.0)
    return 100 * np.stack([f1, 1 - missed / found.shape[1]], axis=1)


def _agreement(score: NDArray[np.float64], drawn: NDArray[np.float64], n: int) -> HumanAgreement:
    f1, right = (quantiles(measure) for measure in drawn.T)
    return HumanAgreement(float(score[0]), float(score[1]), n, f1, right)
