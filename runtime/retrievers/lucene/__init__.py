"""BM25 by Lucene itself, through Anserini, as pyserini searches.

Lin, Ma, Lin, Yang, Pradeep, Nogueira: Pyserini, SIGIR 2021 (arXiv 2102.10073). Ranks and scores
are those of `python -m pyserini.search.lucene --bm25`: Anserini's DefaultEnglishAnalyzer with
Porter's stemmer, k1 0.9, b 0.4, lengths rounded to a byte, ties by id. The folder of an index is a
Lucene index that pyserini can open; and an index made by pyserini, or one of its prebuilt ones by
name, can be opened here if it stores its texts.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from itertools import islice
from pathlib import Path
from tarfile import TarError
from typing import Any

from pydantic import JsonValue

from hopscope import __version__
from hopscope.runtime.errors import (
    CorpusError,
    IndexMismatchError,
    RetrieverError,
    UsageError,
    first_line,
)
from hopscope.runtime.indexes import index_folder
from hopscope.runtime.indexes.index_folder import Manifest
from hopscope.runtime.indexes.phases import Progress, silent
from hopscope.runtime.ports import Retriever
from hopscope.runtime.retrievers.lucene import jvm
from hopscope.runtime.retrievers.lucene._anserini import Searcher
from hopscope.runtime.texts.literals import json_value
from hopscope.runtime.texts.storable import storable
from hopscope.runtime.types import Hit, Passage, digest

KIND = "lucene"
K1 = 0.9
B = 0.4
ANALYZER = "anserini-english-porter"
BATCH = 1024
"""Passages passed to Java at once."""


class Lucene:
    """A Lucene index. Threads share its searcher and may search at once; Java spreads a batch over
    its own threads."""

    def __init__(self, name: str, searcher: Searcher) -> None:
        self._name = name
        self._searcher = searcher

    @property
    def name(self) -> str:
        """Kind, corpus and fingerprint."""
        return self._name

    @property
    def size(self) -> int:
        """Passages in the index."""
        return self._searcher.size

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """At most `k` passages for each query that have any of its terms, best first, ties by id.
        One call with many queries is faster than many calls.

        Raises:
            RetrieverError: Lucene failed, or the index does not store its texts.
        """
        if k < 1 or not queries:
            return [[] for _ in queries]
        # Half of a surrogate pair is no character to Java.
        texts = [storable(query) for query in queries]
        from jnius import JavaException

        try:
            rankings = self._searcher.search(texts, k=k)
        except JavaException as error:
            raise RetrieverError(f"{self._name}: {_first_line(error)}") from error
        return [[self._hit(*stored) for stored in ranked] for ranked in rankings]

    def _hit(self, id: str, score: float, stored: str | None) -> Hit:
        if stored is None:
            raise RetrieverError(
                f"{self._name} stores no texts, only ids; take an index built with -storeRaw"
            )
        return Hit(passage=_passage(id, stored, source=self._name), score=score)


def build(*, index: Path) -> Retriever:
    """Open an index made with `hopscope index build --kind lucene`, or by pyserini or Anserini.

    Args:
        index: a folder, or the name of one of pyserini's prebuilt indexes, which is downloaded
            unless pyserini's cache has it.

    Raises:
        MissingExtraError: pyserini is not installed.
        UsageError: there is no Java, or no such index.
        IndexMismatchError: the folder is no Lucene index, is damaged, or has settings unknown here.
    """
    if (index / index_folder.MANIFEST).is_file():
        manifest = _own_manifest(index)
        settings = manifest.settings
        opened = _open(index, f"{manifest.name}@{manifest.fingerprint[:12]}", settings)
        found, said = opened.size, manifest.counts.get("passages")
        if found != said:
            raise IndexMismatchError(
                f"{index} has {found} passages, its manifest says {said}; build it again"
            )
        return opened
    defaults: dict[str, JsonValue] = {"k1": K1, "b": B}
    if index.is_dir():
        return _open(index, f"{index.resolve().name}@{_commit(index)}", defaults)
    folder, version = _prebuilt(str(index))
    return _open(folder, f"{index}@{version}", defaults)


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
        MissingExtraError: pyserini is not installed.
        UsageError: the folder is taken, or there is no Java.
        CorpusError: the passages are broken, or there are none.
        RetrieverError: Lucene failed.
    """
    java = jvm.classes()
    sha = hashlib.sha256()
    count = 0
    with index_folder.building(folder, overwrite=overwrite) as new:
        with _Indexer(java, new) as indexer:
            for batch in _batches(passages):
                for passage in batch:
                    sha.update(digest(passage.id, passage.title, passage.text).encode())
                    count += 1
                    progress("read", count)
                indexer.add(batch)
            if not count:
                raise CorpusError(
                    "the corpus has no passages: give a file or folder that holds some"
                )
            progress("write", count)
        (new / "write.lock").unlink(missing_ok=True)
        manifest = Manifest(
            kind=KIND,
            name=name,
            fingerprint=sha.hexdigest(),
            counts={"passages": count},
            settings=_settings(k1=k1, b=b),
            hopscope=__version__,
        )
        return index_folder.seal(new, manifest)


class _Indexer:
    """Anserini's writer of an index; the end of the block writes everything to disk."""

    def __init__(self, classes: Any, folder: Path) -> None:
        arguments = ["-collection", "JsonCollection", "-input", "", "-index", str(folder)]
        # One thread, so that the same corpus gives the same index.
        arguments += ["-threads", "1", "-storeRaw"]
        self._folder = folder
        with self._failing():
            self._indexer = classes("io.anserini.index.SimpleIndexer")(arguments)

    def add(self, passages: Sequence[Passage]) -> None:
        documents = [_document(passage) for passage in passages]
        with self._failing():
            taken = self._indexer.addRawDocuments(documents)
        if taken != len(documents):
            raise RetrieverError(f"Lucene took {taken} of {len(documents)} passages, and not why")

    def __enter__(self) -> "_Indexer":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write all to disk; after a failure, release Java's resources."""
        try:
            with self._failing():
                self._indexer.close()
        except RetrieverError:
            if kind is None:
                raise

    @contextmanager
    def _failing(self) -> Iterator[None]:
        from jnius import JavaException

        with jvm.calling:
            try:
                yield
            except JavaException as error:
                message = f"Lucene cannot write {self._folder}: {_first_line(error)}"
                raise RetrieverError(message) from error


def _settings(*, k1: JsonValue, b: JsonValue) -> dict[str, JsonValue]:
    return {
        "variant": "lucene",
        "k1": k1,
        "b": b,
        "tokenizer": ANALYZER,
        "stemmer": "porter",
        "fields": ["title", "text"],
    }


def _own_manifest(index: Path) -> Manifest:
    manifest = index_folder.read_manifest(index)
    if manifest.kind != KIND:
        raise IndexMismatchError(
            f"{index} is an index of kind {manifest.kind!r}, {KIND!r} is needed"
        )
    wanted = _settings(k1=manifest.settings.get("k1"), b=manifest.settings.get("b"))
    index_folder.check_settings(index, manifest, wanted)
    return manifest


def _open(index: Path, name: str, settings: dict[str, JsonValue]) -> Lucene:
    jvm.classes()
    from jnius import JavaException

    k1, b = (float(str(settings[key])) for key in ("k1", "b"))
    kind = KIND if (k1, b) == (K1, B) else f"{KIND}(k1={k1:g},b={b:g})"
    try:
        return Lucene(f"{kind}:{name}", Searcher(index, k1=k1, b=b))
    except JavaException as error:
        raise IndexMismatchError(
            f"{index} cannot be opened as a Lucene index: {_first_line(error)}"
        ) from error


def _commit(index: Path) -> str:
    """Identifies the state of a foreign index: a hash of Lucene's list of its segments."""
    segments = sorted(index.glob("segments_*"))
    if not segments:
        raise IndexMismatchError(
            f"{index} is no index: it has neither a {index_folder.MANIFEST} nor Lucene's segments; "
            "make one with `hopscope index build --kind lucene`"
        )
    return hashlib.sha256(segments[-1].read_bytes()).hexdigest()[:12]


def _prebuilt(name: str) -> tuple[Path, str]:
    """Folder and version of a prebuilt index, after downloading it if the cache lacks it."""
    jvm.classes()
    with jvm.calling:
        from pyserini.prebuilt_index_info import TF_INDEX_INFO as KNOWN
        from pyserini.util import download_prebuilt_index
    if name not in KNOWN:
        raise UsageError(
            f"there is no folder {name}, and no prebuilt inverted index of that name in pyserini, "
            "whose documentation lists them"
        )
    entry = KNOWN[name]
    try:
        with redirect_stdout(sys.stderr):  # stdout is for data
            folder = download_prebuilt_index(name, verbose=False)
    except (OSError, ValueError, AssertionError, TarError) as error:
        size = entry.get("size compressed (bytes)", 0) / 1e6
        raise UsageError(
            f"the prebuilt index {name} ({size:,.0f} MB) could not be downloaded from "
            f"{entry['urls'][0]}: {_first_line(error)}"
        ) from error
    return Path(folder), str(entry["md5"])[:12]


def _document(passage: Passage) -> str:
    """A document of pyserini's JsonCollection: the title is the first line of `contents`."""
    contents = f"{passage.title}\n{passage.text}" if passage.title else passage.text
    return json.dumps({"id": passage.id, "title": passage.title, "contents": contents})


def _passage(id: str, stored: str, *, source: str) -> Passage:
    """The passage of a stored text, in any form of pyserini's indexes."""
    try:
        value = json_value(stored)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        return Passage(id=id, text=stored, source=source)
    title, text = value.get("title"), value.get("text")
    if isinstance(text, str):
        return Passage(id=id, title=title or "", text=text, source=source)
    contents = str(value.get("contents", ""))
    if isinstance(title, str):
        text = contents.removeprefix(title).removeprefix("\n") if title else contents
        return Passage(id=id, title=title, text=text, source=source)
    first, newline, rest = contents.partition("\n")
    if newline and rest.strip():
        return Passage(id=id, title=first.strip().strip('"'), text=rest, source=source)
    return Passage(id=id, text=contents, source=source)


def _batches(passages: Iterable[Passage]) -> Iterator[list[Passage]]:
    rest = iter(passages)
    while batch := list(islice(rest, BATCH)):
        yield batch


def _first_line(error: Exception) -> str:
    return first_line(error).removeprefix("JVM exception occurred: ")
