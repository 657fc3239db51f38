"""Probability that the answer means the same as a gold, by an entailment or equivalence model.

EoR counts an answer as right from 0.8 on by such a model (Li et al. 2024, arXiv 2405.20680;
Bulian, Buck, Gajewski, Börschinger, Schuster 2022, arXiv 2202.07654).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hopscope.runtime.ports import Entailment
from hopscope.runtime.types import Measurement
from hopscope.tracing.scoring.correctness import Answered, correctness
from hopscope.tracing.scoring.metric import AnswerMetric, Case, comparable


@dataclass(frozen=True)
class Equivalence:
    entailment: Entailment
    name: str = "equivalence"
    binary: bool = False

    @property
    def estimator(self) -> str:
        return f"equivalence(entailment={self.entailment.name}, normaliser=none, golds=the model's)"

    def score(self, cases: Sequence[Case]) -> list[Measurement]:
        """All answers go to the model in one call.

        Raises:
            EntailmentError, ReaderError: the model failed.
        """
        golds = [comparable(case) for case in cases]
        asked = dict.fromkeys(
            _answered(case, found)
            for case, found in zip(cases, golds, strict=True)
            if not isinstance(found, str) and (case.answer or "").strip()
        )
        told = correctness(self.entailment, list(asked)) if asked else []
        known = dict(zip(asked, told, strict=True))
        return [
            Measurement(value=None, reason=found, estimator=self.estimator)
            if isinstance(found, str)
            else Measurement(value=known.get(_answered(case, found), 0.0), estimator=self.estimator)
            for case, found in zip(cases, golds, strict=True)
        ]


def _answered(case: Case, golds: Sequence[str]) -> Answered:
    """Golds sorted, so that their order in the question does not change the score."""
    return Answered(case.question.text, tuple(sorted(golds)), case.answer or "")


def build(entailment: Entailment) -> AnswerMetric:
    return Equivalence(entailment)
