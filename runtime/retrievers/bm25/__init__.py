"""BM25 over English text, as Lucene ranks it (Robertson and Zaragoza 2009).

The score of a passage sums over the query's terms, each as often as the query repeats it:

    ln(1 + (N - n + 0.5) / (n + 0.5)) * f / (f + k1 * (1 - b + b * length / mean length))

where n of N passages have the term, and this one has it f times: Lucene's variant
(Kamphuis et al. 2020, "accurate": lengths are not rounded to a byte). k1 0.9 and b 0.4 are
Anserini's. Scores are computed when the index is built, by bm25s.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from tokenize import TokenError
from typing import Any

import bm25s
import numpy as np
from pydantic import JsonValue, TypeAdapter

from hopscope import __version__
from hopscope.runtime.errors import IndexMismatchError
from hopscope.runtime.indexes import index_folder, passage_file
from hopscope.runtime.indexes.index_folder import Manifest
from hopscope.runtime.indexes.passage_file import PassageFile
from hopscope.runtime.indexes.phases import Progress, silent
from hopscope.runtime.ports import Retriever
from hopscope.runtime.retrievers.bm25 import _english
from hopscope.runtime.retrievers.bm25._postings import Postings
from hopscope.runtime.retrievers.bm25._scores import Scorer
from hopscope.runtime.types import Hit, Passage

KIND = "bm25"
K1 = 0.9
B = 0.4
_checked = TypeAdapter(list[Hit]).validate_python
_DAMAGE = (
    OSError, EOFError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError,
    MemoryError, SyntaxError, TokenError,
)  # fmt: skip
"""Errors of reading a file with flipped bits; the header of an array is Python."""


class Bm25:
    """A searchable corpus. Searching is safe from several threads."""

    def __init__(
        self, name: str, fingerprint: str, passages: Sequence[Passage], index: Any
    ) -> None:
        self._passages = passages
        self._scorer = Scorer(index)
        self._name = _name(name, fingerprint, k1=index.k1, b=index.b)

    @property
    def name(self) -> str:
        """Kind, corpus and fingerprint."""
        return self._name

    @property
    def passages(self) -> Sequence[Passage]:
        """All passages by position."""
        return self._passages

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """At most `k` passages for each query that have any of its terms, best first; ties in the
        order of the corpus.

        Raises:
            IndexMismatchError: the index on disk is damaged.
        """
        if k < 1:
            return [[] for _ in queries]
        try:
            found = self._scorer.best([_english.terms(query) for query in queries], k)
            return self._hits(found)
        except _DAMAGE as error:  # postings out of range, scores that are NaN
            raise IndexMismatchError(
                f"{self.name} is damaged: {error}; `hopscope index info FOLDER --verify` names the "
                "file, `hopscope index build --overwrite` makes it anew"
            ) from error

    def _hits(self, found: Sequence[tuple[list[int], list[float]]]) -> list[list[Hit]]:
        places = [at for mine, _ in found for at in mine]
        scores = [score for _, mine in found for score in mine]
        hits: list[Hit] = []
        for begin in range(0, len(places), passage_file.CHUNK):
            passages = self._read(places[begin : begin + passage_file.CHUNK])
            pairs = zip(passages, scores[begin : begin + passage_file.CHUNK], strict=True)
            hits += _checked([{"passage": passage, "score": score} for passage, score in pairs])
        left = iter(hits)
        return [list(islice(left, len(mine))) for mine, _ in found]

    def _read(self, places: Sequence[int]) -> list[Passage]:
        if isinstance(self._passages, PassageFile):
            return self._passages.read(places)
        return [self._sourced(self._passages[at]) for at in places]

    def _sourced(self, passage: Passage) -> Passage:
        return passage if passage.source else passage.model_copy(update={"source": self.name})


def build(*, index: Path) -> Retriever:
    """Open an index made with `hopscope index build`.

    Raises:
        IndexMismatchError: the folder is no BM25 index, is damaged, or has settings unknown here.
    """
    manifest = index_folder.read_manifest(index)
    if manifest.kind != KIND:
        raise IndexMismatchError(
            f"{index} is an index of kind {manifest.kind!r}, {KIND!r} is needed"
        )
    k1, b = (manifest.settings.get(key) for key in ("k1", "b"))
    index_folder.check_settings(index, manifest, _settings(k1=k1, b=b))
    try:
        scored = bm25s.BM25.load(index, mmap=True, show_progress=False)
        name = _name(manifest.name, manifest.fingerprint, k1=scored.k1, b=scored.b)
        passages = PassageFile(index, source=name)
    except _DAMAGE as error:
        raise IndexMismatchError(f"{index} is damaged: {error}; build the index again") from error
    arrays = scored.scores
    for key in ("data", "indices", "indptr"):
        arrays[key] = np.asarray(arrays[key])
    actual = {"passages": len(passages), "terms": len(scored.vocab_dict)}
    actual |= {"scored": arrays["num_docs"], "columns": len(arrays["indptr"]) - 1}
    counts = manifest.counts
    expected = {"passages": counts.get("passages"), "terms": counts.get("terms")}
    expected |= {"scored": expected["passages"], "columns": expected["terms"]}
    if actual != expected:
        raise IndexMismatchError(
            f"{index} has {actual}, its manifest says {expected}; build it again"
        )
    return Bm25(manifest.name, manifest.fingerprint, passages, scored)


def create(
    passages: Iterable[Passage],
    folder: Path,
    *,
    name: str,
    k1: float = K1,
    b: float = B,
    overwrite: bool = False,
    progress: Progress = silent,
) -> Manifest:
    """Build an index in a folder, completely or not at all. Memory does not hold the texts.

    Raises:
        UsageError: the folder is taken.
        CorpusError: the passages are broken, or there are none.
    """
    postings = Postings()
    with index_folder.building(folder, overwrite=overwrite) as new:
        for count in postings.collect(passage_file.write(passages, new)):
            progress("read", count)
        progress("score", len(postings))
        scored = postings.scored(k1=k1, b=b)
        progress("write", len(postings))
        scored.save(new, show_progress=False)
        counts = {"passages": len(postings), "empty": postings.empty}
        counts |= {"tokens": postings.tokens, "terms": len(postings.vocab)}
        manifest = Manifest(
            kind=KIND,
            name=name,
            fingerprint=postings.fingerprint,
            counts=counts,
            settings=_settings(k1=k1, b=b),
            hopscope=__version__,
        )
        return index_folder.seal(new, manifest)


def from_passages(passages: Iterable[Passage], *, name: str, k1: float = K1, b: float = B) -> Bm25:
    """An index in memory, for small corpora.

    Raises:
        CorpusError: there are no passages.
    """
    held = tuple(passages)
    postings = Postings()
    for passage in held:
        postings.add(passage)
    return Bm25(name, postings.fingerprint, held, postings.scored(k1=k1, b=b))


def _name(corpus: str, fingerprint: str, *, k1: float, b: float) -> str:
    kind = KIND if (k1, b) == (K1, B) else f"{KIND}(k1={k1:g},b={b:g})"
    return f"{kind}:{corpus}@{fingerprint[:12]}"


def _settings(*, k1: JsonValue, b: JsonValue) -> dict[str, JsonValue]:
    return {
        "variant": "lucene",
        "k1": k1,
        "b": b,
        "tokenizer": _english.TOKENIZER,
        "stemmer": "porter",
        "stop_words": list[JsonValue](sorted(_english.STOP_WORDS)),
        "fields": ["title", "text"],
    }
