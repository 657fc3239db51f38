"""The dialogues in which a model judges and ranks passages, one message for each passage.

Invariant of the default prompts, `selection/*.jinja`: passages are numbered from [1], and only the
last message states the task, so that all calls on the same passages in the same order share the
messages before it. The form is that of RankGPT and ITEM, the words are ours.
"""

from collections.abc import Sequence
from typing import Literal

from hopscope.runtime.ports import Prompts
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.shortening import cut
from hopscope.runtime.types import Passage, Prompt

SHOWN_WORDS = 300  # of each passage

Criterion = Literal["relevance", "utility"]
Form = Literal["explicit", "implicit"]
"""The form of a reference: the answer itself, or the information that is necessary to give it."""


def shortened(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The passages as the prompts show them."""
    return tuple(cut(passage, SHOWN_WORDS) for passage in passages)


def listwise(
    question: str,
    passages: Sequence[Passage],
    reference: str,
    form: Form,
    first: Form | None,
    *,
    prompts: Prompts = DEFAULT_PROMPTS,
) -> Prompt:
    """Ask for the list of useful passages; with `first`, for an answer before it."""
    return prompts.render(
        "selection/select",
        shortened(passages),
        question=question,
        reference=reference,
        form=form,
        first=first,
    )


def pointwise(
    question: str,
    passage: Passage,
    reference: str,
    form: Form,
    first: Form | None,
    *,
    prompts: Prompts = DEFAULT_PROMPTS,
) -> Prompt:
    """Ask whether one passage is useful; with `first`, for an answer before it."""
    shown = shortened([passage])
    return prompts.render(
        "selection/judge",
        shown,
        question=question,
        passage=shown[0],
        reference=reference,
        form=form,
        first=first,
    )


def ranking(
    question: str,
    passages: Sequence[Passage],
    reference: str,
    form: Form,
    criterion: Criterion,
    *,
    prompts: Prompts = DEFAULT_PROMPTS,
) -> Prompt:
    """Ask for an order of the passages."""
    return prompts.render(
        "selection/rank",
        shortened(passages),
        question=question,
        reference=reference,
        form=form,
        criterion=criterion,
    )


def answer(
    question: str,
    evidence: Sequence[Passage],
    form: Form = "explicit",
    *,
    prompts: Prompts = DEFAULT_PROMPTS,
) -> Prompt:
    """Ask for an answer, in the shared form of all workflows and meters: documents first."""
    name = "selection/answer" if form == "explicit" else "selection/information"
    return prompts.render(name, shortened(evidence), question=question)
