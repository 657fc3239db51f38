"""EoR's own prompts: a summary of passages, and an answer from a summary."""

from collections.abc import Sequence

from hopscope.runtime.compressors import summary
from hopscope.runtime.prompting.prompts import short_answer
from hopscope.runtime.types import GenerationRequest, Passage


def summarise(question: str, shown: Sequence[Passage], seed: int) -> GenerationRequest:
    return summary.request(question, shown, seed, summary.WORDS)


def cut(text: str) -> str:
    """The first 200 words of a summary."""
    return summary.cut(text, summary.WORDS)


def as_document(text: str) -> tuple[Passage, ...]:
    """The summary as a document in place of its passages; an empty summary is no document."""
    return (summary.as_passage(text),) if text else ()


def answer(
    question: str, shown: Sequence[Passage], seed: int, max_tokens: int
) -> GenerationRequest:
    """A short answer. A summary is the reader's own text and does not count as shown."""
    prompt = short_answer(question, shown)
    keys = tuple(passage.key for passage in shown if passage.source != summary.SOURCE)
    prompt = prompt.model_copy(update={"shown": keys})
    return GenerationRequest(prompt=prompt, max_tokens=max_tokens, stop=("\n",), seed=seed)
