"""The final answer of a text, after its answer marker."""

import re

ANSWER_MARKER = re.compile(r".* answer is:? (.*)\.?")


def extract_answer(text: str) -> str | None:
    """The text after the last answer marker, without a final full stop; None without a marker.

    IRCoT's pattern: case-sensitive, a space before "answer", one line. "So the answer is:
    Walls and Bridges." gives "Walls and Bridges".
    """
    match = ANSWER_MARKER.match(text)
    return match.group(1).removesuffix(".").strip() if match else None
