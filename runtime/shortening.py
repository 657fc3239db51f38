"""Shorter texts under the same key: a passage stays the one that was retrieved."""

from hopscope.runtime.types import Passage


def shortened(passage: Passage, text: str) -> Passage:
    """The passage with another text. Its key would otherwise be a hash of that text, where it has
    no id."""
    return passage.model_copy(update={"id": passage.key, "text": text})


def cut(passage: Passage, words: int) -> Passage:
    """The passage with at most `words` words of text, under the same key."""
    text = passage.text.split()
    return passage if len(text) <= words else shortened(passage, " ".join(text[:words]))
