"""A reader's rating of the evidence's contribution to the answer, in [0, 1].

Needs no gold: it judges the run's own answer. One greedy reply; a rating from 1 to 10 becomes
(rating - 1) / 9.

Source: the direct evaluation of SePer's appendix A.2.2 (Dai et al. 2025, arXiv 2503.01478); the
default prompt is Hopscope's own.
"""

from hopscope.runtime.ports import Reader
from hopscope.runtime.prompting.loading import chosen
from hopscope.runtime.prompting.prompt_set import PromptSet
from hopscope.tracing.answer_metrics._judge import Asked, RatingJudge
from hopscope.tracing.scoring.metric import NO_ANSWER, AnswerMetric, Case

PROMPT = "judge/contribution"


def _asked(case: Case, prompts: PromptSet) -> Asked:
    if not case.answer or not case.answer.strip():
        return NO_ANSWER
    if not case.evidence:
        return "no evidence to judge"
    asked = {"question": case.question.text, "answer": case.answer}
    return (prompts.render(PROMPT, case.evidence, **asked),)


def build(reader: Reader, *, seed: int = 0, prompts: str = "") -> AnswerMetric:
    """
    Args:
        prompts: a set of prompts, or its folder.
    """
    return RatingJudge("judge_direct", reader, seed, PROMPT, _asked, chosen(prompts))
