"""The parts of a reply that workflows use: its first sentence, its final answer."""

from hopscope.runtime.texts import sentences
from hopscope.runtime.texts.final_answer import extract_answer as extract_answer


def first_sentence(text: str) -> str:
    """The first sentence, stripped; an abbreviation such as "U.S." does not end it."""
    text = text.strip()
    return text[: sentence_end(text)]


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
