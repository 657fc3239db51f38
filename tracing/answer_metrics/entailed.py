"""Entailment of a gold by the answer, a probability: does the answer say what the gold says?

With an answer-equivalence model as entailment and a threshold of 0.8 this is the correctness of
EoR (Li et al. 2024, arXiv 2405.20680; Bulian et al. 2022, arXiv 2202.07654).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hopscope.runtime.ports import Entailment, Statement
from hopscope.runtime.types import Measurement
from hopscope.tracing.answer_metrics._metric import AnswerMetric, Case, comparable


@dataclass(frozen=True)
class Entailed:
    entailment: Entailment
    name: str = "entailed"
    binary: bool = False

    @property
    def estimator(self) -> str:
        return f"entailed(answer→gold, entailment={self.entailment.name}, golds=max)"

    def score(self, cases: Sequence[Case]) -> list[Measurement]:
        """All pairs go to the model in one call."""
        golds = [comparable(case) for case in cases]
        pairs = dict.fromkeys(
            Statement(case.question.text, case.answer or "", gold)
            for case, found in zip(cases, golds, strict=True)
            if not isinstance(found, str) and (case.answer or "").strip()
            for gold in found
        )
        relations = self.entailment.classify(list(pairs)) if pairs else []
        chance = {pair: p.entailment for pair, p in zip(pairs, relations, strict=True)}

        def best(case: Case, found: list[str]) -> float:
            asked = (Statement(case.question.text, case.answer or "", gold) for gold in found)
            return max(chance.get(statement, 0.0) for statement in asked)

        return [
            Measurement(value=None, reason=found, estimator=self.estimator)
            if isinstance(found, str)
            else Measurement(value=best(case, found), estimator=self.estimator)
            for case, found in zip(cases, golds, strict=True)
        ]


def build(entailment: Entailment) -> AnswerMetric:
    return Entailed(entailment)
