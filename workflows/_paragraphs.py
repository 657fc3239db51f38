"""Paragraphs as workflows show them: near-duplicates left out, long ones cut."""

from collections.abc import Iterable

from rapidfuzz import fuzz

from hopscope.runtime.types import Hit, Passage

DUPLICATE_RATIO = 90
"""Similarity in percent, of title and of text, from which two paragraphs count as one (IRCoT)."""


def same(one: Passage, other: Passage) -> bool:
    """Whether two paragraphs are near enough to be the same."""
    titles, texts = (one.title, other.title), (one.text, other.text)
    return min(fuzz.ratio(*titles), fuzz.ratio(*texts)) >= DUPLICATE_RATIO


def fresh(held: Iterable[Passage], hits: Iterable[Hit], *, longest: int) -> list[Hit]:
    """The hits of at most `longest` words that are near none of those held or taken before."""
    known, taken = list(held), []
    for hit in hits:
        short = len(hit.passage.text.split()) <= longest
        if short and not any(same(hit.passage, passage) for passage in known):
            known.append(hit.passage)
            taken.append(hit)
    return taken


def cut(passage: Passage, words: int) -> Passage:
    """The passage with at most `words` words of text, under the same key."""
    text = passage.text.split()
    if len(text) <= words:
        return passage
    return passage.model_copy(update={"id": passage.key, "text": " ".join(text[:words])})
