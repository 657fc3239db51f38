"""A reader's rating of what the evidence contributes to the answer, in [0, 1].

Needs no gold: it judges the answer that was given. Greedy, one reply; a rating from 1 to 10
becomes (rating - 1) / 9.

Source: the direct evaluation of SePer's appendix A.2.2 (Dai et al. 2025, arXiv 2503.01478), in
words of our own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hopscope.runtime.ports import Reader
from hopscope.runtime.types import Measurement
from hopscope.tracing.answer_metrics import _rating
from hopscope.tracing.answer_metrics._metric import NO_ANSWER, AnswerMetric, Case


@dataclass(frozen=True)
class DirectJudge:
    reader: Reader
    seed: int = 0
    name: str = "judge_direct"
    binary: bool = False

    @property
    def estimator(self) -> str:
        return (
            f"judge-direct(reader={self.reader.name}, rating=1-10 as (r-1)/9, temperature=0, "
            f"max_tokens={_rating.MAX_TOKENS}, normaliser=none)"
        )

    def score(self, cases: Sequence[Case]) -> list[Measurement]:
        """
        Raises:
            ReaderError: the reader failed.
        """
        asked = {
            position: _rating.prompt(
                case.question.text, case.evidence, case.answer, _rating.CONTRIBUTION
            )
            for position, case in enumerate(cases)
            if case.answer and case.answer.strip() and case.evidence
        }
        rated = _rating.rate(self.reader, list(asked.values()), seed=self.seed)
        return [
            self._measurement(rated[asked[position]] if position in asked else _why(case))
            for position, case in enumerate(cases)
        ]

    def _measurement(self, found: float | str) -> Measurement:
        if isinstance(found, str):
            return Measurement(value=None, reason=found, seed=self.seed, estimator=self.estimator)
        return Measurement(value=found, n=1, seed=self.seed, estimator=self.estimator)


def _why(case: Case) -> str:
    return "no evidence to judge" if case.answer and case.answer.strip() else NO_ANSWER


def build(reader: Reader, *, seed: int = 0) -> AnswerMetric:
    return DirectJudge(reader, seed)
