"""Passages with shorter texts and the same key: each stays the retrieved passage."""

from hopscope.runtime.types import Passage


def shortened(passage: Passage, text: str) -> Passage:
    """The passage with another text and the same key; without an id its key would be a hash of the
    new text."""
    return passage.model_copy(update={"id": passage.key, "text": text})


def cut(passage: Passage, words: int) -> Passage:
    """The passage with at most `words` words of text, under the same key."""
    text = passage.text.split()
    return passage if len(text) <= words else shortened(passage, " ".join(text[:words]))
