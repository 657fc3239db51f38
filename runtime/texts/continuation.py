"""The parts of a reply that workflows use: its first sentence, its final answer."""

import re

from hopscope.runtime.texts import sentences
from hopscope.runtime.texts.final_answer import extract_answer as extract_answer


def first_sentence(text: str) -> str:
    """The first sentence, stripped; an abbreviation such as "U.S." does not end it."""
    text = text.strip()
    return text[: sentence_end(text)]


_CLOSED = re.compile(r"""\([^()\\]*\)|\[[^\[\]\\]*\]|"[^"\\]*"|“[^“”\\]*”""")
_UNCLOSED = re.compile(r"""["“”«»()\[\]]|(?<!\w)['\u2018]|--|\.\.""")
_LISTED = re.compile(r"""(?<!\w)(\d{1,2}|[ivx]+|[a-z])[.)]|["”]\s\(""")
"""What later text can complete to a quotation, an insertion or a list, which may move the end of a
sentence."""
_NEXT = re.compile(r"\s+[^\W\d_]\S*\s+\S")
"""The first word after a sentence and the beginning of the second, as far as the splitter looks."""
_SECOND_WORD = re.compile(r"""[.!?]["'”\u2019)\]]*\s+[^\W\d_]\S*\s+\S+\Z""")
"""The end of a text whose last word may be the second after a sentence."""


def first_sentence_settled(text: str) -> bool:
    """Whether `first_sentence` stays the same, whatever text follows: ask after each new word. A
    quotation, an insertion or a list that is open leaves it unsettled."""
    text = text.lstrip()
    if not _SECOND_WORD.search(text):
        return False
    start, end = next(sentences.spans(text), (0, len(text)))
    return (
        start == 0
        and end < sentences.STRETCH // 2
        and _NEXT.match(text, end) is not None
        and _LISTED.search(text, 0, end) is None
        and _UNCLOSED.search(_CLOSED.sub("", text[:end])) is None
    )


def sentence_end(text: str, *, least: int = 1) -> int:
    """Where the first sentence of at least `least` characters ends, before the space after it."""
    for start, end in sentences.spans(text):
        if end - start >= least:
            return end
    return len(text.rstrip())


def continued(text: str, piece: str) -> str:
    """`text` with the model's continuation, which may lack its leading space."""
    if text and piece and not text[-1].isalnum() and not text[-1].isspace():
        return f"{text} {piece.lstrip()}"
    return text + piece
