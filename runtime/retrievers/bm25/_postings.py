"""The terms of each passage, collected from a stream, then scored by bm25s."""

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import bm25s

from hopscope.runtime.errors import CorpusError
from hopscope.runtime.retrievers.bm25 import _english
from hopscope.runtime.types import Passage, digest

STOPPED = -1


class _Numbering(dict[str, int]):
    """The number of each word's term, by the word; words are stemmed once."""

    def __init__(self, vocabulary: dict[str, int]) -> None:
        self._vocabulary = vocabulary

    def __missing__(self, word: str) -> int:
        term = _english.term(word)
        number = self._vocabulary.setdefault(term, len(self._vocabulary)) if term else STOPPED
        self[word] = number
        return number


class Postings(Sequence["array[int]"]):
    """The term numbers of each passage, 4 bytes a token: bm25s's tokenised corpus."""

    def __init__(self) -> None:
        self.vocab: dict[str, int] = {}
        """The number of each term."""
        self.empty = 0
        """Passages without any term; no query finds them."""
        self._numbering = _Numbering(self.vocab)
        self._terms = array("i")
        self._ends = array("q", [0])
        self._sha = hashlib.sha256()

    @property
    def ids(self) -> "Postings":
        """bm25s reads `ids` and `vocab` of a tokenised corpus."""
        return self

    @property
    def tokens(self) -> int:
        """Tokens of all passages, stop words not counted."""
        return len(self._terms)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over ids, titles and texts of the passages in order."""
        return self._sha.hexdigest()

    def add(self, passage: Passage) -> None:
        """Index title and text together, as one field."""
        self._sha.update(digest(passage.id, passage.title, passage.text).encode())
        words = _english.words(f"{passage.title} {passage.text}")
        numbers = array("i", map(self._numbering.__getitem__, words))
        kept = array("i", (number for number in numbers if number != STOPPED))
        self._terms.extend(kept)
        self._ends.append(len(self._terms))
        self.empty += not kept

    def collect(self, passages: Iterable[Passage]) -> Iterator[int]:
        """Add passages; yields their number after each."""
        for count, passage in enumerate(passages, 1):
            self.add(passage)
            yield count

    def scored(self, *, k1: float, b: float) -> Any:
        """A bm25s index of the collected passages.

        Raises:
            CorpusError: there are no passages, or none has a term.
        """
        if not len(self):
            raise CorpusError("the corpus has no passages: give a file or folder that holds some")
        if not self._terms:
            raise CorpusError("no passage of the corpus has a word to search for")
        index = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy")
        index.index(self, create_empty_token=False, show_progress=False)
        return index

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> "array[int]": ...
    @overload
    def __getitem__(self, index: slice) -> list["array[int]"]: ...
    def __getitem__(self, index: int | slice) -> "array[int] | list[array[int]]":
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._terms[self._ends[index] : self._ends[index + 1]]
