"""The prompts that every workflow and meter shares.

Invariant: documents come first and the task last, so that all calls on the same
evidence share one prefix up to the end of the documents. Without evidence only the
document block is missing (GroGU compares "identical prompt minus the documents").

The embedded reader is trained on exactly these strings: change one and it must be
trained again.
"""

from collections.abc import Sequence

from hopscope.runtime.types import Message, Passage, Prompt

ROLE = "You answer questions."
DOCUMENTS = "Documents:"
ANSWER_TASK = "Give only the answer."
REASON_TASK = "Think step by step, one sentence per step, and end with: So the answer is: ANSWER."


def render(position: int, passage: Passage) -> str:
    """One document line; `position` counts from 1."""
    return f"Doc {position} ({passage.title}): {passage.text}"


def system(evidence: Sequence[Passage]) -> Message:
    """The shared prefix: the role, then the documents in the order given, if any."""
    if not evidence:
        return Message(role="system", content=ROLE)
    lines = [ROLE, DOCUMENTS, *(render(i, p) for i, p in enumerate(evidence, start=1))]
    return Message(role="system", content="\n".join(lines))


def ask(question: str, evidence: Sequence[Passage], task: str, *, prefix: str = "") -> Prompt:
    """Ask for `task` about the question. The task comes last, so that calls on the same evidence
    share all that stands before. The reader continues after `prefix`."""
    user = Message(role="user", content=f"Question: {question}\n{task}")
    return Prompt(
        messages=(system(evidence), user),
        prefix=prefix,
        shown=tuple(passage.key for passage in evidence),
    )


def short_answer(question: str, evidence: Sequence[Passage] = ()) -> Prompt:
    """Ask for the bare answer: naive RAG, closed book, and the meters' samples."""
    return ask(question, evidence, ANSWER_TASK)


def chain_of_thought(
    question: str, evidence: Sequence[Passage] = (), thoughts: Sequence[str] = ()
) -> Prompt:
    """Ask for reasoning sentence by sentence that ends in the answer marker (IRCoT).

    The reader continues after `thoughts`, the sentences it has already written.
    """
    return ask(question, evidence, REASON_TASK, prefix=" ".join(thoughts))
