"""EoR's own prompt: an answer from a summary."""

from collections.abc import Sequence

from hopscope.runtime.compressors import summary
from hopscope.runtime.prompting.prompt_set import PromptSet
from hopscope.runtime.types import Passage, Prompt


def as_document(text: str) -> tuple[Passage, ...]:
    """The summary as a document in place of its passages; an empty summary is no document."""
    return (summary.as_passage(text),) if text else ()


def answer(prompts: PromptSet, question: str, shown: Sequence[Passage]) -> Prompt:
    """A short answer. A summary is the reader's own text and does not count as shown."""
    prompt = prompts.render("eor/answer", shown, question=question)
    keys = tuple(passage.key for passage in shown if passage.source != summary.SOURCE)
    return prompt.model_copy(update={"shown": keys})
