"""Fits prompts into the reader's context by dropping evidence, last passages first."""

from collections.abc import Callable, Sequence
from typing import Literal

from hopscope.runtime.errors import ContextOverflowError
from hopscope.runtime.stages import ReaderContext
from hopscope.runtime.types import Generation, GenerationRequest, Passage, Prompt


def generate(
    asker: ReaderContext,
    evidence: Sequence[Passage],
    prompt: Callable[[Sequence[Passage]], Prompt],
    *,
    max_tokens: int,
    stop: tuple[str, ...] = (),
    keeps: Literal["first_sentence"] | None = None,
) -> Generation:
    """One generation from as much of the evidence as fits, its first passages.

        prompt = partial(deps.prompts.render, "naive/answer", question=question)
        generate(deps, evidence, prompt, max_tokens=32, stop=("\n",))

    Cutting the middle of a prompt, as FlashRAG does, can remove text next to the question. Dropped
    passages are missing from the step's `shown`.

    Raises:
        ContextOverflowError: the prompt does not fit even without evidence.
    """

    def ask(shown: Sequence[Passage]) -> Generation:
        request = GenerationRequest(
            prompt=prompt(shown), max_tokens=max_tokens, stop=stop, keeps=keeps, seed=asker.seed
        )
        [[generation]] = asker.reader.generate([request])
        return generation

    for count in range(len(evidence), 0, -1):
        try:
            return ask(evidence[:count])
        except ContextOverflowError:
            continue
    return ask(())
