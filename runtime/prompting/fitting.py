"""Fits prompts into the reader's context by dropping evidence, last passages first."""

from collections.abc import Callable, Sequence

from hopscope.runtime.errors import ContextOverflowError
from hopscope.runtime.stages import ReaderContext
from hopscope.runtime.types import Generation, GenerationRequest, Passage


def generate(
    asker: ReaderContext,
    evidence: Sequence[Passage],
    request: Callable[[Sequence[Passage]], GenerationRequest],
) -> Generation:
    """One generation from as much of the evidence as fits, its first passages.

    Cutting the middle of a prompt, as FlashRAG does, can remove text next to the question. Dropped
    passages are missing from the step's `shown`.

    Raises:
        ContextOverflowError: the prompt does not fit even without evidence.
    """
    for count in range(len(evidence), 0, -1):
        try:
            [[generation]] = asker.reader.generate([request(evidence[:count])])
            return generation
        except ContextOverflowError:
            continue
    [[generation]] = asker.reader.generate([request(())])
    return generation
