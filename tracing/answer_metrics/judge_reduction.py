"""A reader's rating of the answer with the evidence minus its rating without it, in [-1, 1].

Needs no gold: it judges the run's own answer. Two greedy replies, each a rating from 1 to 10 as
(rating - 1) / 9; without evidence one reply serves for both, and the difference is exactly 0.

Source: the reduction evaluation of SePer's appendix A.2.2 (Dai et al. 2025, arXiv 2503.01478); the
default prompt is Hopscope's own.
"""

from hopscope.runtime.ports import Reader
from hopscope.runtime.prompting.loading import chosen
from hopscope.runtime.prompting.prompt_set import PromptSet
from hopscope.tracing.answer_metrics._judge import Asked, RatingJudge
from hopscope.tracing.scoring.metric import NO_ANSWER, AnswerMetric, Case

PROMPT = "judge/correctness"


def _asked(case: Case, prompts: PromptSet) -> Asked:
    """With the evidence and without."""
    if not case.answer or not case.answer.strip():
        return NO_ANSWER
    asked = {"question": case.question.text, "answer": case.answer}
    without = prompts.render(PROMPT, (), **asked)
    if not case.evidence:
        return without, without
    return prompts.render(PROMPT, case.evidence, **asked), without


def build(reader: Reader, *, seed: int = 0, prompts: str = "") -> AnswerMetric:
    """
    Args:
        prompts: a set of prompts, or its folder.
    """
    return RatingJudge("judge_reduction", reader, seed, PROMPT, _asked, chosen(prompts))
