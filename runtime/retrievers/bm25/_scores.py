"""Scores of passages for queries, and the best of them, out of scored postings.

A query's scores are summed in one array that the next query takes over: a fresh one would cost as
much as the sums, in pages that the system hands out. A batch turns the postings of its commonest
terms into rows, one score for each passage, since adding a row is several times cheaper than going
through a long list; the sums are the same to the last bit.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]
BLOCKS = 64
"""The passages are cut into so many runs; passages at the same place of each run are a group."""
COMMON = 8
"""A term is common that one of so many passages has."""
REPEATED = 3
"""A row pays for itself if so many queries of a batch have its term."""
ROWS_BYTES = 64 * 2**20
"""Rows of a batch take at most so much memory."""


class Scorer:
    """The postings of an index, by term. Safe from several threads."""

    def __init__(self, index: Any) -> None:
        """
        Args:
            index: bm25s's, scored.
        """
        held = index.scores
        self._scores: Scores = held["data"]
        self._places: NDArray[np.int32] = held["indices"]
        self._ends = memoryview(held["indptr"])  # gives numbers faster than numpy
        self._numbers: dict[str, int] = index.vocab_dict
        self._size = -(-int(held["num_docs"]) // BLOCKS) * BLOCKS
        self._spare: list[Scores] = []

    def best(
        self, queries: Sequence[Sequence[str]], k: int
    ) -> Iterator[tuple[list[int], list[float]]]:
        """For each query, by its terms: positions of the `k` best passages that have any of them,
        best first and ties in the order of the corpus, and their scores.

        Raises:
            LookupError, TypeError, ValueError: the index is damaged.
        """
        known = self._numbers
        asked = [[known[term] for term in terms if term in known] for terms in queries]
        rows = self._rows(asked)
        try:
            sums = self._spare.pop()
        except IndexError:
            sums = np.empty(self._size, dtype=np.float32)
        for terms in asked:
            sums.fill(0)
            for term in terms:
                row = rows.get(term)
                if row is None:
                    self._add(term, sums)
                else:
                    sums += row
            places = best(sums, k) if terms else np.empty(0, dtype=np.intp)
            yield places.tolist(), sums[places].tolist()
        self._spare.append(sums)

    def _add(self, term: int, sums: Scores) -> None:
        mine = slice(self._ends[term], self._ends[term + 1])
        np.add.at(sums, self._places[mine], self._scores[mine])

    def _rows(self, asked: Sequence[Sequence[int]]) -> Mapping[int, Scores]:
        """Rows of common terms that the batch repeats, the commonest first."""
        if len(asked) < REPEATED:
            return {}
        lengths = {}
        for term, times in Counter(term for terms in asked for term in terms).items():
            length = self._ends[term + 1] - self._ends[term]
            if times >= REPEATED and length * COMMON > self._size:
                lengths[term] = length
        fit = ROWS_BYTES // (self._size * 4)
        rows = {}
        for term in sorted(lengths, key=lengths.__getitem__, reverse=True)[:fit]:
            rows[term] = np.zeros(self._size, dtype=np.float32)
            self._add(term, rows[term])
        return rows


def best(scores: Scores, k: int) -> NDArray[np.intp]:
    """Positions of the `k` highest scores above zero, ties in order of position."""
    places = _candidates(scores, k)
    if len(places) > k:
        held = scores[places]
        places = places[held >= np.partition(held, len(held) - k)[len(held) - k]]
    return places[np.argsort(-scores[places], kind="stable")][:k]


def _candidates(scores: Scores, k: int) -> NDArray[np.intp]:
    """Positions of scores above zero, the `k` highest and all equal to one of them among them."""
    # The k-th best of the groups' maxima is a lower bound, and few groups reach it.
    groups = len(scores) // BLOCKS
    if groups > k and len(scores) == groups * BLOCKS:
        blocks = scores.reshape(BLOCKS, groups)
        highest = blocks.max(axis=0)
        least = np.partition(highest, groups - k)[groups - k]
        if least > 0:
            reaching = np.flatnonzero(highest >= least)
            held = blocks.take(reaching, axis=1)
            block, group = np.divmod(np.flatnonzero(held >= least), len(reaching))
            return block * groups + reaching[group]
    return np.flatnonzero(scores)
