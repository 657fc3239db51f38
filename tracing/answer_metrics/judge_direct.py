"""A reader's rating of the evidence's contribution to the answer, in [0, 1].

Needs no gold: it judges the run's own answer. One greedy reply; a rating from 1 to 10 becomes
(rating - 1) / 9.

Source: the direct evaluation of SePer's appendix A.2.2 (Dai et al. 2025, arXiv 2503.01478); the
prompt is Hopscope's own.
"""

from hopscope.runtime.ports import Reader
from hopscope.tracing.answer_metrics import _rating
from hopscope.tracing.answer_metrics._judge import Asked, RatingJudge
from hopscope.tracing.scoring.metric import NO_ANSWER, AnswerMetric, Case


def _prompts(case: Case) -> Asked:
    if not case.answer or not case.answer.strip():
        return NO_ANSWER
    if not case.evidence:
        return "no evidence to judge"
    asked = case.question.text, case.evidence, case.answer
    return (_rating.prompt(*asked, _rating.CONTRIBUTION),)


def build(reader: Reader, *, seed: int = 0) -> AnswerMetric:
    return RatingJudge("judge_direct", reader, seed, _prompts)
