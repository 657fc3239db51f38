"""Prompts that must fit the reader: what gives way is the evidence, last passages first."""

from collections.abc import Callable, Sequence

from hopscope.runtime.errors import ContextOverflow
from hopscope.runtime.stages import Asker
from hopscope.runtime.types import Generation, GenerationRequest, Passage


def generate(
    asker: Asker,
    evidence: Sequence[Passage],
    request: Callable[[Sequence[Passage]], GenerationRequest],
) -> Generation:
    """One generation from as much of the evidence as fits, its first passages.

    Cutting the middle of a prompt, as FlashRAG does, can cut the question's neighbours away.
    What was left out is missing from the step's `shown`.

    Raises:
        ContextOverflow: the prompt does not even fit without evidence.
    """
    for kept in range(len(evidence), 0, -1):
        try:
            [[generation]] = asker.reader.generate([request(evidence[:kept])])
            return generation
        except ContextOverflow:
            continue
    [[generation]] = asker.reader.generate([request(())])
    return generation
