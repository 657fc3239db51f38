"""A question, and the passages that are retrieved for it."""

import unicodedata

from hopscope.runtime.types.record import Record, Text, Texts, digest


class Question(Record):
    """A question to answer."""

    text: Text
    answers: Texts = ()
    """Gold aliases; each is a right answer. Empty when unknown."""
    id: Text = ""
    """The dataset's id, or empty."""


class Passage(Record):
    """A retrievable unit of text. Two passages are the same when their `key` is."""

    id: Text = ""
    title: Text = ""
    text: Text
    source: Text = ""
    """The index or service it came from."""

    @property
    def key(self) -> str:
        """The id, else a hash of the text with case, width and spacing folded."""
        if self.id:
            return self.id
        folded = " ".join(unicodedata.normalize("NFKC", self.text).casefold().split())
        return digest(folded)[:16]

    @property
    def content_hash(self) -> str:
        """Hash of the unchanged title and text. The store uses it as the passage's key."""
        return digest(self.title, self.text)


class Hit(Record):
    """A passage in a ranking."""

    passage: Passage
    score: float
    """The retriever's own score: comparable within one ranking only."""
