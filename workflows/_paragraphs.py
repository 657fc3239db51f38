"""Paragraphs as workflows show them: near-duplicates left out, long ones cut."""

from collections.abc import Iterable

from rapidfuzz import fuzz

from hopscope.runtime.texts.shortening import cut
from hopscope.runtime.types import Hit, Passage

DUPLICATE_RATIO = 90
"""Similarity in percent, of title and of text, from which two paragraphs count as one (IRCoT)."""


def same(one: Passage, other: Passage) -> bool:
    """Whether two paragraphs are near enough to be the same."""
    pairs = (one.title, other.title), (one.text, other.text)
    # Told what counts, the library gives up early: all it would take grows with the square.
    return all(fuzz.ratio(*pair, score_cutoff=DUPLICATE_RATIO) for pair in pairs)


def fresh(held: Iterable[Passage], hits: Iterable[Hit], *, longest: int, shown: int) -> list[Hit]:
    """The hits of at most `longest` words that are near none of those held or taken before.

    They are cut to the `shown` words here, so that evidence is what a model reads: a meter must
    not credit text that nobody saw.
    """
    known, taken = list(held), []
    for hit in hits:
        short = len(hit.passage.text.split()) <= longest
        passage = cut(hit.passage, shown)
        if short and not any(same(passage, other) for other in known):
            known.append(passage)
            taken.append(hit.model_copy(update={"passage": passage}))
    return taken
