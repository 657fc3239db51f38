"""Prompts with a workflow's own task, in the form of the shared ones: documents, question, task."""

from collections.abc import Sequence

from hopscope.runtime.prompting.prompts import system
from hopscope.runtime.types import Message, Passage, Prompt


def ask(question: str, evidence: Sequence[Passage], task: str, *, prefix: str = "") -> Prompt:
    """The task comes last, so that calls on the same evidence share the text before it."""
    user = Message(role="user", content=f"Question: {question}\n{task}")
    return Prompt(
        messages=(system(evidence), user),
        prefix=prefix,
        shown=tuple(passage.key for passage in evidence),
    )
