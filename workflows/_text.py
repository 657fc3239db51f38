"""What workflows read out of a model's text: its first sentence, its final answer."""

from hopscope.runtime import sentences
from hopscope.runtime.final_answer import extract_answer as extract_answer


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
    """`text` and what the model wrote after it, which may come with or without its first space."""
    if text and piece and not text[-1].isalnum() and not text[-1].isspace():
        return f"{text} {piece.lstrip()}"
    return text + piece
