"""What workflows read out of a model's text: its first sentence, its final answer."""

import re
from functools import cache

import pysbd

ANSWER_MARKER = re.compile(r".* answer is:? (.*)\.?")


def extract_answer(text: str) -> str | None:
    """What follows the last answer marker, without one final full stop; None without a marker.

    IRCoT's pattern: case-sensitive, a space before "answer", one line. "So the answer is:
    Walls and Bridges." gives "Walls and Bridges".
    """
    found = ANSWER_MARKER.match(text)
    return found.group(1).removesuffix(".").strip() if found else None


@cache
def _segmenter() -> pysbd.Segmenter:
    return pysbd.Segmenter(language="en", clean=False)


def first_sentence(text: str) -> str:
    """The first sentence, stripped; an abbreviation such as "U.S." does not end it."""
    text = text.strip()
    return str(_segmenter().segment(text)[0]).strip() if text else ""
