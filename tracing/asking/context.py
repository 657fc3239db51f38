"""The part of the evidence that a reader sees: with `context_words` a meter cuts the context."""

import re
from collections.abc import Sequence

from hopscope.runtime.types import Passage, Record

_WORD = re.compile(r"\S+")


class ShownContext(Record):
    """The evidence as the reader sees it, and the passages it does not see in full."""

    passages: tuple[Passage, ...]
    """In order; the last may be shortened."""
    cut: str | None = None
    """Key of the passage that lost the end of its text."""
    dropped: tuple[str, ...] = ()
    """Keys of the passages that are not shown at all."""

    @property
    def kept_back(self) -> tuple[str, ...]:
        """Keys of all passages that are not shown in full."""
        return self.dropped if self.cut is None else (self.cut, *self.dropped)


def nothing_shown(context: ShownContext, words: int) -> str | None:
    """Why there is no value, if evidence was given and all of it was cut."""
    if not context.dropped or context.passages:
        return None
    return f"context_words={words} leaves none of {', '.join(context.dropped)}"


def cut(evidence: Sequence[Passage], words: int) -> ShownContext:
    """The first `words` words of the evidence, titles included; 0 is all of it.

    A passage with no room for any of its text is dropped, and so are all after it.
    """
    left = words or sum(_words(passage) for passage in evidence)
    shown: list[Passage] = []
    for position, passage in enumerate(evidence):
        if (needed := _words(passage)) > left:
            ends = [word.end() for word in _WORD.finditer(passage.text)]
            kept = left - len(_WORD.findall(passage.title))
            rest = evidence[position + (kept > 0) :]
            if kept > 0:
                shown.append(passage.model_copy(update={"text": passage.text[: ends[kept - 1]]}))
            return ShownContext(
                passages=tuple(shown),
                cut=passage.key if kept > 0 else None,
                dropped=tuple(other.key for other in rest),
            )
        shown.append(passage)
        left -= needed
    return ShownContext(passages=tuple(shown))


def _words(passage: Passage) -> int:
    return len(_WORD.findall(f"{passage.title} {passage.text}"))
