"""English text cut into sentences by pysbd, in time proportional to its length.

pysbd itself takes quadratic time and more, so it is given one stretch of the text after the other.
A sentence that the end of a stretch may have cut off begins the next stretch.
"""

from collections.abc import Iterator
from functools import cache

import pysbd

STRETCH = 2000
"""Characters given to pysbd at a time. A longer sentence is cut there."""

Span = tuple[int, int]


def spans(text: str) -> Iterator[Span]:
    """Start and end of each sentence, without the space around it.

    An abbreviation such as "U.S." ends no sentence.
    """
    start = 0
    while start < len(text):
        found = _spans(text[start : start + STRETCH])
        rest = start + STRETCH < len(text) and len(found) > 1
        for first, end in found[:-1] if rest else found:
            yield start + first, start + end
        start += found[-1][0] if rest else STRETCH


def _spans(text: str) -> list[Span]:
    found: list[Span] = []
    position = 0
    for segment in _segmenter().segment(text):
        sentence = segment.strip()
        start = text.find(sentence, position)
        # pysbd marks stops with rare signs and loses those that the text has itself.
        if sentence and start >= 0:
            position = start + len(sentence)
            found.append((start, position))
    return found


@cache
def _segmenter() -> pysbd.Segmenter:
    return pysbd.Segmenter(language="en", clean=False)
