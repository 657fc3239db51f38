"""What EoR asks of the reader besides the shared prompts: a summary, and an answer from one."""

from collections.abc import Sequence

from hopscope.runtime.prompts import short_answer
from hopscope.runtime.types import GenerationRequest, Passage
from hopscope.workflows._prompts import ask

SUMMARY_TASK = (
    "Do not answer the question. Summarise the documents truthfully in at most 200 words, above "
    "all what matters for the answer."
)
SUMMARY_WORDS, SUMMARY_TOKENS = 200, 300
SUMMARY = "summary"  # as a source


def summarise(question: str, shown: Sequence[Passage], seed: int) -> GenerationRequest:
    prompt = ask(question, shown, SUMMARY_TASK)
    return GenerationRequest(prompt=prompt, max_tokens=SUMMARY_TOKENS, seed=seed)


def cut(summary: str) -> str:
    """Its first 200 words: more would be no compression."""
    return " ".join(summary.split()[:SUMMARY_WORDS])


def as_document(summary: str) -> tuple[Passage, ...]:
    """A summary in the place of the passages it was made of; an empty one is no document."""
    return (Passage(title="Summary", text=summary, source=SUMMARY),) if summary else ()


def answer(
    question: str, shown: Sequence[Passage], seed: int, max_tokens: int
) -> GenerationRequest:
    """A short answer. A summary is the reader's own text and does not count as shown."""
    prompt = short_answer(question, shown)
    keys = tuple(passage.key for passage in shown if passage.source != SUMMARY)
    prompt = prompt.model_copy(update={"shown": keys})
    return GenerationRequest(prompt=prompt, max_tokens=max_tokens, stop=("\n",), seed=seed)
