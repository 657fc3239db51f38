"""Batches of BM25 queries by our `bm25`, by bm25s with its numba backend, and by its numpy backend.

Passages are generated (benchmarks/generated.py). bm25s tokenizes, stems and scores as in its
documentation and returns the passages of its own corpus; its first batch also compiles, which is
told apart. Both sides return the best ten. What the sides hold is kept from the garbage collector:
one side's corpus would else be searched whenever another makes its hits.
"""

import gc
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import generated

from hopscope.runtime.retrievers import bm25
from peer_parts.rounds import PeerMissingError, Table, ratio, spread, taken_in_turn

K = 10


def measure(*, passages: int, queries: int, rounds: int) -> list[Table]:
    """
    Raises:
        PeerMissingError: numba is missing.
    """
    if find_spec("numba") is None:
        raise PeerMissingError("numba is not installed, so bm25s has only its numpy backend")
    library: Any = import_module("bm25s")
    stemmer: Any = import_module("Stemmer").Stemmer("porter")
    corpus = [
        each.model_dump(include={"id", "title", "text"}) for each in generated.passages(passages)
    ]
    texts = [f"{record['title']} {record['text']}" for record in corpus]
    tokens = library.tokenize(texts, stemmer=stemmer, show_progress=False)
    asked = generated.queries(queries)

    def of(backend: str) -> Callable[[], object]:
        index = library.BM25(k1=0.9, b=0.4, method="lucene", backend=backend, corpus=corpus)
        index.index(tokens, show_progress=False)

        def search() -> object:
            words = library.tokenize(asked, stemmer=stemmer, show_progress=False)
            return index.retrieve(words, k=K, show_progress=False)

        return search

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "ours"
        bm25.create(generated.passages(passages), place, name="generated")
        retriever = bm25.build(index=place)
        sides: dict[str, Callable[[], object]] = {
            "Hopscope": lambda: retriever.search(asked, k=K),
            "bm25s, numba": of("numba"),
            "bm25s, numpy": of("numpy"),
        }
        first = {}
        for label, search in sides.items():
            begun = process_time()
            search()
            first[label] = process_time() - begun
        gc.collect()
        gc.freeze()
        seconds = taken_in_turn(sides, rounds)
        gc.unfreeze()
    rows = [
        (
            label,
            str(spread([1000 * each / queries for each in seconds[label]])),
            str(ratio(seconds[label], seconds["Hopscope"])),
            f"{first[label]:.1f}",
        )
        for label in sides
    ]
    heading = f"A batch of {queries:,} queries to {passages:,} generated passages, best {K}"
    return [Table(heading, ("", "ms a query", "times ours", "first batch, seconds"), rows)]
