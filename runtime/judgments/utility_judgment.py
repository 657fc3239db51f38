"""Utility judgments: a model's judgment of which passages are useful to answer a question.

Listwise shows all passages at once and parses a list; pointwise asks about each passage alone.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from hopscope.runtime.judgments import item_prompts
from hopscope.runtime.judgments.item_prompts import Form
from hopscope.runtime.judgments.selection import selection, verdict
from hopscope.runtime.stages import ReaderContext
from hopscope.runtime.types import GenerationRequest, Passage, Prompt

Judgment = Literal["listwise", "pointwise"]

JUDGMENT_TOKENS = 32
SELECTION_TOKENS = 8  # for each passage that may be listed
ANSWER_TOKENS = {None: 0, "explicit": 96, "implicit": 256}  # for the text before the judgment


class UtilityJudgments(NamedTuple):
    """The useful passages."""

    useful: tuple[Passage, ...]
    """In the order of the prompt."""
    ok: bool | None
    """Whether all replies could be parsed; None if there was nothing to judge."""


def judge(
    asker: ReaderContext,
    question: str,
    passages: Sequence[Passage],
    judgment: Judgment,
    reference: str = "",
    form: Form = "explicit",
    *,
    first: Form | None = None,
) -> UtilityJudgments:
    """Select the useful passages, with a `reference` answer of this `form`, if any.

    `first`: the model writes an answer of that form before it judges, in the same reply.
    """
    if not passages:
        return UtilityJudgments((), None)

    def ask(asked: Sequence[Prompt], tokens: int) -> list[str]:
        limit = tokens + ANSWER_TOKENS[first]
        requests = [
            GenerationRequest(prompt=prompt, max_tokens=limit, seed=asker.seed) for prompt in asked
        ]
        return [generations[0].text for generations in asker.reader.generate(requests)]

    if judgment == "listwise":
        prompt = item_prompts.listwise(
            question, passages, reference, form, first, prompts=asker.prompts
        )
        tokens = JUDGMENT_TOKENS + SELECTION_TOKENS * len(passages)
        [reply] = ask([prompt], tokens)
        picked = selection(reply, len(passages), after_text=first is not None)
        useful = (p for i, p in enumerate(passages, start=1) if i in picked.positions)
        return UtilityJudgments(tuple(useful), picked.ok)

    asked = [
        item_prompts.pointwise(question, p, reference, form, first, prompts=asker.prompts)
        for p in passages
    ]
    verdicts = [verdict(reply) for reply in ask(asked, JUDGMENT_TOKENS)]
    return UtilityJudgments(
        tuple(p for p, useful in zip(passages, verdicts, strict=True) if useful),
        ok=None not in verdicts,
    )
