"""Scores of passages for queries, and the best of them, out of scored postings.

A query's scores are summed in one array that the next query takes over: a fresh one would cost as
much as the sums, in pages that the system hands out. A batch turns the postings of its commonest
terms into rows, one score for each passage, since adding a row is several times cheaper than going
through a long list, and answers the queries with the same rows one after the other. The sums are
the same to the last bit.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, islice
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
TOGETHER = 16384
"""Fewer postings than these are put together before they are added."""
FEW = 64
"""So many more than wanted are sorted at once."""


Span = tuple[int, int, int]
"""A term of a query, and where its postings begin and end."""


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
        self._ends: NDArray[np.int64] = held["indptr"]
        self._numbers: dict[str, int] = index.vocab_dict
        self._size = -(-int(held["num_docs"]) // BLOCKS) * BLOCKS
        self._spare: list[Scores] = []

    def best(self, queries: Sequence[Sequence[str]], k: int) -> list[tuple[list[int], list[float]]]:
        """For each query, by its terms: positions of the `k` best passages that have any of them,
        best first and ties in the order of the corpus, and their scores.

        Raises:
            LookupError, TypeError, ValueError: the index is damaged.
        """
        asked = self._spans(queries)
        rows = self._rows(asked)
        try:
            sums = self._spare.pop()
        except IndexError:
            sums = np.empty(self._size, dtype=np.float32)
        found: list[tuple[list[int], list[float]]] = [([], [])] * len(asked)
        for at in _order(asked, rows):
            if asked[at]:
                self._sum(asked[at], rows, sums)
                places = best(sums, k)
                found[at] = places.tolist(), sums[places].tolist()
        self._spare.append(sums)
        return found

    def _spans(self, queries: Sequence[Sequence[str]]) -> list[list[Span]]:
        """The known terms of each query, looked up for all queries at once."""
        known = self._numbers.get
        asked = [[at for at in map(known, terms) if at is not None] for terms in queries]
        flat = np.fromiter(chain.from_iterable(asked), dtype=np.intp)
        columns = (flat, self._ends[flat], self._ends[flat + 1])
        spans = zip(*(column.tolist() for column in columns), strict=True)
        return [list(islice(spans, len(terms))) for terms in asked]

    def _sum(self, spans: list[Span], rows: Mapping[int, Scores], sums: Scores) -> None:
        """Overwrite `sums` with the scores of a query, added in the order of its terms."""
        row = rows.get(spans[0][0])
        if row is None and len(spans) > 1 and (row := rows.get(spans[1][0])) is not None:
            spans = [spans[1], spans[0], *spans[2:]]  # a + b = b + a, to the last bit
        if row is None:
            sums.view(np.complex128).fill(0)  # wide numbers are filled faster
        else:
            np.copyto(sums, row)
            spans = spans[1:]
        waiting: list[Span] = []
        for span in spans:
            row = rows.get(span[0])
            if row is None:
                waiting.append(span)
            else:
                self._add(waiting, sums)
                waiting = []
                sums += row
        self._add(waiting, sums)

    def _add(self, spans: Sequence[Span], sums: Scores) -> None:
        """Add postings to `sums`, one term after the other; short lists in one call."""
        places = [self._places[begin:end] for _, begin, end in spans]
        scores = [self._scores[begin:end] for _, begin, end in spans]
        if len(spans) > 1 and sum(map(len, places)) < TOGETHER:
            places = [np.concatenate(places, dtype=np.intp)]
            scores = [np.concatenate(scores)]
        for place, score in zip(places, scores, strict=True):
            # What is not above zero, NaN too, would lose hits without a word.
            if not np.minimum.reduce(score, initial=np.inf) > 0:
                raise ValueError("a score of a term is not above zero")
            np.add.at(sums, place, score)

    def _rows(self, asked: Sequence[Sequence[Span]]) -> Mapping[int, Scores]:
        """Rows of common terms that the batch repeats, the commonest first."""
        if len(asked) < REPEATED:
            return {}
        common = Counter(
            span for spans in asked for span in spans if (span[2] - span[1]) * COMMON > self._size
        )
        repeated = [span for span, times in common.items() if times >= REPEATED]
        fit = ROWS_BYTES // (self._size * 4)
        rows = {}
        for span in sorted(repeated, key=lambda span: span[1] - span[2])[:fit]:
            rows[span[0]] = np.zeros(self._size, dtype=np.float32)
            self._add([span], rows[span[0]])
        return rows


def _order(asked: Sequence[Sequence[Span]], rows: Mapping[int, Scores]) -> Sequence[int]:
    """An order of the queries in which those with the same rows, which the processor's cache then
    holds, follow each other."""
    if not rows:
        return range(len(asked))
    rank = {term: at for at, term in enumerate(rows)}
    keys = [sorted(rank[term] for term, _, _ in spans if term in rank) for spans in asked]
    return sorted(range(len(asked)), key=keys.__getitem__)


def best(scores: Scores, k: int) -> NDArray[np.intp]:
    """Positions of the `k` highest scores above zero, ties in order of position."""
    # The k-th best of the groups' maxima is a lower bound, and few groups reach it.
    groups = len(scores) // BLOCKS
    if groups > k and len(scores) == groups * BLOCKS:
        blocks = scores.reshape(BLOCKS, groups)
        highest = np.maximum.reduce(blocks, axis=0)
        parted = highest.copy()
        parted.partition(groups - k)
        least = parted[groups - k]
        if least > 0:
            reaching = (highest >= least).nonzero()[0]
            held = blocks.take(reaching, axis=1).ravel()
            inside = (held >= least).nonzero()[0]
            block, group = divmod(inside[_first(held[inside], k)], len(reaching))
            chosen: NDArray[np.intp] = block * groups + reaching[group]
            return chosen
    places = scores.nonzero()[0]
    return places[_first(scores[places], k)]


def _first(scores: Scores, k: int) -> NDArray[np.intp]:
    """Places of the `k` highest, ties in order of place."""
    if len(scores) <= FEW + k:
        order: NDArray[np.intp] = (-scores).argsort(kind="stable")
        return order[:k]
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    reaching: NDArray[np.intp] = (scores >= least).nonzero()[0]
    return reaching[np.argsort(-scores[reaching], kind="stable")[:k]]
