"""Paragraphs for prompts: near-duplicates left out, long ones cut."""

from collections.abc import Iterable

from rapidfuzz import fuzz

from hopscope.runtime.shortening import cut
from hopscope.runtime.types import Hit, Passage

DUPLICATE_RATIO = 90
"""From this similarity of title and of text, in percent, two paragraphs count as one (IRCoT)."""


def same(one: Passage, other: Passage) -> bool:
    """Whether two paragraphs are near-duplicates."""
    pairs = (one.title, other.title), (one.text, other.text)
    # The cutoff lets the library stop early: the full ratio takes quadratic time.
    return all(fuzz.ratio(*pair, score_cutoff=DUPLICATE_RATIO) for pair in pairs)


def fresh(held: Iterable[Passage], hits: Iterable[Hit], *, longest: int, shown: int) -> list[Hit]:
    """The hits of at most `longest` words that repeat no paragraph held or taken before.

    They are cut to `shown` words here, so that the evidence is the text that a model reads: a
    meter must not credit unseen text.
    """
    known, taken = list(held), []
    for hit in hits:
        short = len(hit.passage.text.split()) <= longest
        passage = cut(hit.passage, shown)
        if short and not any(same(passage, other) for other in known):
            known.append(passage)
            taken.append(hit.model_copy(update={"passage": passage}))
    return taken
