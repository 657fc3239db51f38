"""Rankings by a model: of a whole list at once, or in windows from its tail."""

from collections.abc import Sequence
from typing import NamedTuple

from hopscope.runtime.errors import UsageError
from hopscope.runtime.judgments import item_prompts
from hopscope.runtime.judgments.item_prompts import Criterion, Form
from hopscope.runtime.judgments.permutation import permutation
from hopscope.runtime.stages import ReaderContext
from hopscope.runtime.types import GenerationRequest, Passage

RANKING_TOKENS = 16
RANK_TOKENS = 8  # for each passage


class Ranked(NamedTuple):
    """The passages in a new order."""

    passages: tuple[Passage, ...]
    """All passages, best first."""
    ok: bool | None
    """Whether the reply could be parsed; None if there was nothing to rank."""


def rank(
    asker: ReaderContext,
    question: str,
    passages: Sequence[Passage],
    criterion: Criterion,
    reference: str = "",
    form: Form = "explicit",
) -> Ranked:
    """The passages by relevance or utility, given a `reference` answer of this `form`, if any."""
    if not passages:
        return Ranked((), None)
    request = GenerationRequest(
        prompt=item_prompts.ranking(
            question, passages, reference, form, criterion, prompts=asker.prompts
        ),
        max_tokens=RANKING_TOKENS + RANK_TOKENS * len(passages),
        seed=asker.seed,
    )
    [[generation]] = asker.reader.generate([request])
    order, ok = permutation(generation.text, len(passages))
    return Ranked(tuple(passages[position - 1] for position in order), ok)


def windows(n: int, size: int, stride: int) -> list[slice]:
    """The windows of a list of `n`, from the tail to the head.

    The last window always begins at the head: with a plain countdown by `stride`, the first
    passages of most lists, and all of a short one, would never be ranked.

    Raises:
        UsageError: windows that leave gaps or never move.
    """
    if not 1 <= stride <= size:
        raise UsageError(f"a stride of {stride} in windows of {size}: choose one from 1 to {size}")
    starts = [*range(n - size, 0, -stride), 0]
    return [slice(start, min(start + size, n)) for start in starts]
