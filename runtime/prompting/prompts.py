"""The default prompts that are shared most.

Invariant: documents come first and the task last, so that all calls on the same
evidence share one prefix up to the end of the documents. Without evidence only the
document block is missing (GroGU compares "identical prompt minus the documents").

The embedded reader is trained on exactly the texts of `sets/default`: change one and it must be
trained again.
"""

from collections.abc import Sequence

from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.types import Message, Passage, Prompt


def system(evidence: Sequence[Passage]) -> Message:
    """The shared prefix: the role, then the documents in the order given, if any."""
    return DEFAULT_PROMPTS.render("shared/documents", evidence).messages[0]


def ask(question: str, evidence: Sequence[Passage], task: str, *, prefix: str = "") -> Prompt:
    """Ask for `task` about the question; the reader continues after `prefix`."""
    prompt = DEFAULT_PROMPTS.render("shared/ask", evidence, question=question, task=task)
    return prompt.model_copy(update={"prefix": prefix})


def short_answer(question: str, evidence: Sequence[Passage] = ()) -> Prompt:
    """Ask for the bare answer."""
    return DEFAULT_PROMPTS.render("shared/answer", evidence, question=question)


def chain_of_thought(
    question: str, evidence: Sequence[Passage] = (), thoughts: Sequence[str] = ()
) -> Prompt:
    """Ask for reasoning sentence by sentence that ends in the answer marker.

    The reader continues after `thoughts`, the sentences it has already written.
    """
    return DEFAULT_PROMPTS.render(
        "shared/reasoning", evidence, question=question, thoughts=thoughts
    )
