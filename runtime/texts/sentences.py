"""Splits English text into sentences by pysbd, in time proportional to its length.

pysbd itself takes quadratic time and more, so it gets one stretch of the text after the other.
A sentence that the end of a stretch may have cut off begins the next stretch.
"""

from collections.abc import Iterator
from functools import cache
from threading import Lock

import pysbd

STRETCH = 2000
"""Characters that pysbd gets at a time. A longer sentence is cut there."""

Span = tuple[int, int]

_segmenting = Lock()
"""pysbd keeps the text that it splits in the splitter: threads split in turn."""


def spans(text: str) -> Iterator[Span]:
    """Start and end of each sentence, without the space around it.

    An abbreviation such as "U.S." ends no sentence.
    """
    start = 0
    while start < len(text):
        sentences = _spans(text[start : start + STRETCH])
        rest = start + STRETCH < len(text) and len(sentences) > 1
        for first, end in sentences[:-1] if rest else sentences:
            yield start + first, start + end
        start += sentences[-1][0] if rest else STRETCH


def _spans(text: str) -> list[Span]:
    sentences: list[Span] = []
    position = 0
    with _segmenting:
        segments = _segmenter().segment(text)
    for segment in segments:
        sentence = segment.strip()
        start = text.find(sentence, position)
        # pysbd marks full stops with rare characters and loses those of the text itself.
        if sentence and start >= 0:
            position = start + len(sentence)
            sentences.append((start, position))
    return sentences


@cache
def _segmenter() -> pysbd.Segmenter:
    return pysbd.Segmenter(language="en", clean=False)
