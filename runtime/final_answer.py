"""The answer that a text comes to, where it says so."""

import re

ANSWER_MARKER = re.compile(r".* answer is:? (.*)\.?")


def extract_answer(text: str) -> str | None:
    """What follows the last answer marker, without one final full stop; None without a marker.

    IRCoT's pattern: case-sensitive, a space before "answer", one line. "So the answer is:
    Walls and Bridges." gives "Walls and Bridges".
    """
    found = ANSWER_MARKER.match(text)
    return found.group(1).removesuffix(".").strip() if found else None
