"""What workflows read out of a model's text: its first sentence, its final answer."""

from functools import cache

import pysbd

from hopscope.runtime.final_answer import extract_answer as extract_answer


@cache
def _segmenter() -> pysbd.Segmenter:
    return pysbd.Segmenter(language="en", clean=False)


def first_sentence(text: str) -> str:
    """The first sentence, stripped; an abbreviation such as "U.S." does not end it."""
    text = text.strip()
    return text[: sentence_end(text)]


def sentence_end(text: str, *, least: int = 1) -> int:
    """Where the first sentence of at least `least` characters ends, before the space after it."""
    position = 0
    for segment in _segmenter().segment(text):
        sentence = segment.strip()
        start = text.find(sentence, position)
        if start < 0:  # pysbd marks stops with rare signs and loses those of the text itself
            break
        position = start + len(sentence)
        if len(sentence) >= least:
            return position
    return len(text.rstrip())


def continued(text: str, piece: str) -> str:
    """`text` and what the model wrote after it, which may come with or without its first space."""
    if text and piece and not text[-1].isalnum() and not text[-1].isspace():
        return f"{text} {piece.lstrip()}"
    return text + piece
