"""Long texts in pieces: `words:100,overlap:20`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from hopscope.runtime.corpora.reading import Draft
from hopscope.runtime.errors import UsageError

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Chunking:
    """How long the pieces are."""

    words: int
    """At most, of each piece; words are what white space separates."""
    overlap: int = 0
    """Words that a piece repeats of the one before."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `words:N` or `words:N,overlap:M`.

        Raises:
            UsageError: it is not of this form, or a piece would hold nothing new.
        """
        found = re.fullmatch(r"words:(\d{1,9})(?:,overlap:(\d{1,9}))?", text.replace(" ", ""))
        if found is None:
            raise UsageError(f"--chunk {text}: give words:N or words:N,overlap:M")
        words, overlap = int(found[1]), int(found[2] or 0)
        if overlap >= words:
            raise UsageError(f"--chunk {text}: the overlap must be less than the words")
        return cls(words, overlap)

    def split(self, whole: Draft) -> Iterator[Draft]:
        """The pieces in order, with the same title; a text that is short enough stays as it is.

        Where the source gives an id, the pieces have `ID#1`, `ID#2`, and so on.
        """
        words = [found.span() for found in _WORD.finditer(whole.text)]
        if len(words) <= self.words:
            yield whole
            return
        last = len(words) - self.overlap
        for number, begin in enumerate(range(0, last, self.words - self.overlap), 1):
            piece = words[begin : begin + self.words]
            text = whole.text[piece[0][0] : piece[-1][1]]
            yield whole._replace(text=text, id=whole.id and f"{whole.id}#{number}")
