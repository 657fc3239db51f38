"""How much more correct a reader finds the answer with the evidence than without, in [-1, 1].

Needs no gold: it judges the answer that was given. Two greedy replies, each a rating from 1 to 10
as (rating - 1) / 9; without evidence both are one, and the difference exactly 0.

Source: the reduction evaluation of SePer's appendix A.2.2 (Dai et al. 2025, arXiv 2503.01478), in
words of our own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hopscope.runtime.ports import Reader
from hopscope.runtime.types import Measurement, Prompt
from hopscope.tracing.answer_metrics import _rating
from hopscope.tracing.answer_metrics._metric import NO_ANSWER, AnswerMetric, Case


@dataclass(frozen=True)
class ReductionJudge:
    reader: Reader
    seed: int = 0
    name: str = "judge_reduction"
    binary: bool = False

    @property
    def estimator(self) -> str:
        return (
            f"judge-reduction(reader={self.reader.name}, rating=1-10 as (r-1)/9, temperature=0, "
            f"max_tokens={_rating.MAX_TOKENS}, normaliser=none)"
        )

    def score(self, cases: Sequence[Case]) -> list[Measurement]:
        """
        Raises:
            ReaderError: the reader failed.
        """
        asked = [_prompts(case) for case in cases]
        flat = [prompt for pair in asked for prompt in pair or ()]
        rated = _rating.rate(self.reader, flat, seed=self.seed)
        return [self._measurement(pair and (rated[pair[0]], rated[pair[1]])) for pair in asked]

    def _measurement(self, found: tuple[float | str, float | str] | None) -> Measurement:
        with_evidence, without = found or (NO_ANSWER, NO_ANSWER)
        reason = next((r for r in (with_evidence, without) if isinstance(r, str)), None)
        if isinstance(with_evidence, str) or isinstance(without, str):
            return Measurement(value=None, reason=reason, seed=self.seed, estimator=self.estimator)
        return Measurement(
            value=with_evidence - without, n=1, seed=self.seed, estimator=self.estimator
        )


def _prompts(case: Case) -> tuple[Prompt, Prompt] | None:
    """With the evidence and without; None where there is no answer to judge."""
    if not case.answer or not case.answer.strip():
        return None
    question = case.question.text
    without = _rating.prompt(question, (), case.answer, _rating.CORRECTNESS_WITHOUT)
    if not case.evidence:
        return without, without
    task = _rating.CORRECTNESS_WITH
    return _rating.prompt(question, case.evidence, case.answer, task), without


def build(reader: Reader, *, seed: int = 0) -> AnswerMetric:
    return ReductionJudge(reader, seed)
