"""Splits long texts into pieces: `words:100,overlap:20`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from hopscope.runtime.corpora.records.reading import PassageDraft
from hopscope.runtime.errors import UsageError

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Chunking:
    """The length of the pieces."""

    words: int
    """Most words of a piece; white space separates words."""
    overlap: int = 0
    """Words that a piece repeats from the piece before."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `words:N` or `words:N,overlap:M`.

        Raises:
            UsageError: the text has another form, or a piece would hold nothing new.
        """
        match = re.fullmatch(r"words:(\d{1,9})(?:,overlap:(\d{1,9}))?", text.replace(" ", ""))
        if match is None:
            raise UsageError(f"--chunk {text}: give words:N or words:N,overlap:M")
        words, overlap = int(match[1]), int(match[2] or 0)
        if overlap >= words:
            raise UsageError(f"--chunk {text}: the overlap must be less than the words")
        return cls(words, overlap)

    def split(self, whole: PassageDraft) -> Iterator[PassageDraft]:
        """The pieces in order, with the same title; a text that is short enough stays whole.

        Where the source gives an id, the pieces have `ID#1`, `ID#2`, and so on.
        """
        words = [match.span() for match in _WORD.finditer(whole.text)]
        if len(words) <= self.words:
            yield whole
            return
        last = len(words) - self.overlap
        for number, begin in enumerate(range(0, last, self.words - self.overlap), 1):
            piece = words[begin : begin + self.words]
            text = whole.text[piece[0][0] : piece[-1][1]]
            yield whole._replace(text=text, id=whole.id and f"{whole.id}#{number}")
