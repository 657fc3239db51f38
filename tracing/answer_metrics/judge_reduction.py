"""A reader's rating of the answer with the evidence minus its rating without it, in [-1, 1].

Needs no gold: it judges the run's own answer. Two greedy replies, each a rating from 1 to 10 as
(rating - 1) / 9; without evidence one reply serves for both, and the difference is exactly 0.

Source: the reduction evaluation of SePer's appendix A.2.2 (Dai et al. 2025, arXiv 2503.01478); the
prompts are Hopscope's own.
"""

from hopscope.runtime.ports import Reader
from hopscope.tracing.answer_metrics import _rating
from hopscope.tracing.answer_metrics._judge import Asked, RatingJudge
from hopscope.tracing.scoring.metric import NO_ANSWER, AnswerMetric, Case


def _prompts(case: Case) -> Asked:
    """With the evidence and without."""
    if not case.answer or not case.answer.strip():
        return NO_ANSWER
    question = case.question.text
    without = _rating.prompt(question, (), case.answer, _rating.CORRECTNESS_WITHOUT)
    if not case.evidence:
        return without, without
    task = _rating.CORRECTNESS_WITH
    return _rating.prompt(question, case.evidence, case.answer, task), without


def build(reader: Reader, *, seed: int = 0) -> AnswerMetric:
    return RatingJudge("judge_reduction", reader, seed, _prompts)
