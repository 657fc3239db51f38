"""Dense retrieval: passages and queries as vectors, the largest inner products first, by faiss.

Douze et al.: The Faiss library, 2024 (arXiv 2401.08281). `Flat` compares with every passage and
is exact; `HNSW32` (a graph) and `IVF256,PQ48` (lists of codes) give most of the same neighbours
for less time or memory. Encoders and their rules: `hopscope.runtime.encoders`.
"""

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import JsonValue

from hopscope import __version__
from hopscope.runtime.encoders import naming
from hopscope.runtime.encoders.naming import EncoderSpec
from hopscope.runtime.errors import CorpusError, IndexMismatchError, RetrieverError, UsageError
from hopscope.runtime.indexes import index_folder, passage_file
from hopscope.runtime.indexes.index_folder import Manifest
from hopscope.runtime.indexes.phases import Progress, silent
from hopscope.runtime.models.devices import Device
from hopscope.runtime.models.processor import settle_processor
from hopscope.runtime.ports import Retriever
from hopscope.runtime.retrievers.dense import faiss_index as _faiss
from hopscope.runtime.texts.storable import storable
from hopscope.runtime.types import Hit, Passage, digest

if TYPE_CHECKING:
    from hopscope.runtime.encoders.encoder import Encoder

KIND = "dense"
INDEX = "dense.faiss"
FLAT = "Flat"


class Dense:
    """A searchable corpus. Searching is safe from several threads."""

    def __init__(
        self, name: str, passages: Sequence[Passage], index: Any, encoder: "Encoder"
    ) -> None:
        """`name` is the `source` of `passages`."""
        self._name = name
        self._passages = passages
        self._index = index
        self._encoder = encoder
        self._lock = Lock()
        self.queries_cut = 0
        """Queries so far whose end was cut off, because they are longer than the encoder's
        input."""

    @property
    def name(self) -> str:
        """Kind, encoder, faiss factory and search settings, corpus and fingerprint."""
        return self._name

    @property
    def passages(self) -> Sequence[Passage]:
        """All passages by position."""
        return self._passages

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """The `k` passages nearest to each query by inner product, best first; ties in the order of
        the corpus. A blank query has no hits.

        Raises:
            RetrieverError: the encoder or faiss failed.
        """
        nonblank = [at for at, query in enumerate(queries) if query.strip()] if k > 0 else []
        rankings: list[list[Hit]] = [[] for _ in queries]
        if not nonblank:
            return rankings
        # Half of a surrogate pair is no character to a tokenizer.
        texts = [storable(queries[at]) for at in nonblank]
        encoded = self._encoder.queries(texts)
        if encoded.vectors.shape[1] != self._index.d:
            raise IndexMismatchError(
                f"{self._name} has {self._index.d} dimensions, the encoder {self._encoder.name} "
                f"gives {encoded.vectors.shape[1]}"
            )
        with self._lock:  # indexes on a GPU are for one thread at a time
            self.queries_cut += encoded.cut
            try:
                scores, places = self._index.search(encoded.vectors, min(k, len(self._passages)))
            except RuntimeError as error:  # a GPU gives 2,048 at most, or its memory is full
                raise RetrieverError(f"{self._name}: {error}") from error
        # Where an approximate index finds too few, faiss fills up with -1.
        order = np.lexsort((places, -scores))
        scores, places = (np.take_along_axis(rows, order, axis=1) for rows in (scores, places))
        for at, row, positions in zip(nonblank, scores.tolist(), places.tolist(), strict=True):
            rankings[at] = [
                Hit(passage=self._passages[place], score=score)
                for score, place in zip(row, positions, strict=True)
                if place >= 0
            ]
        return rankings


def build(
    *, index: Path, encoder: str = "", search: str = "", device: Device = "auto"
) -> Retriever:
    """Open an index made with `hopscope index build --kind dense`.

    Args:
        index: its folder.
        encoder: the encoder that built it, if its folder has moved, such as `e5:FOLDER`.
        search: the search effort, such as `nprobe=32` or `efSearch=128`.
        device: the device of the encoder.

    Raises:
        MissingExtraError: faiss is not installed.
        UsageError: the encoder is missing, or faiss does not know `search`.
        IndexMismatchError: the folder is no dense index, is damaged, or was built with another
            encoder, tokenizer or dimension.
    """
    manifest = index_folder.read_manifest(index)
    if manifest.kind != KIND:
        raise IndexMismatchError(
            f"{index} is an index of kind {manifest.kind!r}, {KIND!r} is needed"
        )
    settings = manifest.settings
    spec = _encoder(index, manifest, encoder)
    factory = str(settings.get("faiss"))
    vectors = _faiss.read(index / INDEX, factory)
    set_to = _faiss.search_settings(vectors, search)
    how = ",".join(part for part in (spec.name, factory, set_to) if part)
    name = f"{KIND}({how}):{manifest.name}@{manifest.fingerprint[:12]}"
    try:
        passages = passage_file.PassageFile(index, source=name)
    except (OSError, ValueError, TypeError) as error:
        raise IndexMismatchError(f"{index} is damaged: {error}; build the index again") from error
    actual: dict[str, JsonValue] = {"passages": len(passages), "vectors": vectors.ntotal}
    expected: dict[str, JsonValue] = dict.fromkeys(actual, manifest.counts.get("passages"))
    actual["dimension"], expected["dimension"] = vectors.d, settings.get("dimension")
    if actual != expected:
        raise IndexMismatchError(
            f"{index} has {actual}, its manifest says {expected}; build it again"
        )
    settle_processor()
    from hopscope.runtime.encoders.encoder import load

    return Dense(name, passages, _faiss.on_gpu(vectors), load(spec, device=device))


def create(
    passages: Iterable[Passage],
    folder: Path,
    *,
    name: str,
    encoder: str,
    faiss: str = FLAT,
    device: Device = "auto",
    batch_tokens: int | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
) -> Manifest:
    """Build an index in a folder, all of it or nothing. Neither texts nor vectors are held in
    memory, but for what faiss holds. A build that was killed or failed goes on where it was when
    it is repeated: the corpus is read again, passages encoded before are not encoded again.

    Args:
        passages: the corpus.
        folder: the folder of the new index.
        name: the name of the corpus.
        encoder: a name that `encoders.naming.parse` reads.
        faiss: a factory string.
        device: the device of the encoder.
        batch_tokens: passages times tokens encoded together, which limits the memory; the default
            depends on the device.
        overwrite: whether to replace an index in the folder.
        progress: called with the progress.

    Raises:
        MissingExtraError: faiss is not installed.
        UsageError: the folder is taken, or encoder or factory string cannot be used.
        CorpusError: the passages are broken, or there are none.
        RetrieverError: the encoder or the disk failed.
    """
    spec = naming.parse(encoder)
    _faiss.module()
    settle_processor()
    from hopscope.runtime.encoders.encoder import load
    from hopscope.runtime.retrievers.dense import _vectors

    model = load(spec, device=device, batch_tokens=batch_tokens)
    _faiss.make(faiss, model.passages([Passage(text="a")]).vectors.shape[1])
    rules = spec.convention.model_dump_json()
    key = digest(spec.name, rules)[:12]
    keep = _vectors.PROGRESS
    with index_folder.resuming(folder, overwrite=overwrite, key=key, kept=keep) as new:
        sha = hashlib.sha256()
        count, hashes = 0, array("Q")
        for count, passage in enumerate(passage_file.write(passages, new), 1):
            sha.update(digest(passage.id, passage.title, passage.text).encode())
            hashes.append(int(digest(passage.title, passage.text)[:16], 16))
            progress("read", count)
        if not count:
            raise CorpusError("the corpus has no passages: give a file or folder that holds some")
        held = passage_file.PassageFile(new)
        matrix, cut = _vectors.encode(
            held,
            new,
            model,
            fingerprint=sha.hexdigest(),
            first=_vectors.first_places(hashes),
            report=lambda count: progress("encode", count),
        )
        made = _faiss.make(faiss, matrix.shape[1])
        filled = _faiss.fill(made, faiss, matrix, lambda count: progress("write", count))
        _faiss.write(filled, new / INDEX)
        settings = _settings(spec, faiss, matrix.shape[1])
        counts = {"passages": len(held), "cut": cut}
        del matrix, held
        _vectors.remove(new)
        manifest = Manifest(
            kind=KIND,
            name=name,
            fingerprint=sha.hexdigest(),
            counts=counts,
            settings=settings,
            hopscope=__version__,
        )
        return index_folder.seal(new, manifest)


def _settings(spec: EncoderSpec, factory: str, dimension: JsonValue) -> dict[str, JsonValue]:
    return {
        "encoder": spec.name,
        "place": spec.place,
        "tokenizer": spec.tokenizer,
        "rules": spec.convention.model_dump(exclude={"source"}),
        "dimension": dimension,
        "faiss": factory,
        "metric": "inner product",
    }


def _encoder(index: Path, manifest: Manifest, given: str) -> EncoderSpec:
    """The encoder of an index, at its old place or at the given one."""
    settings = manifest.settings
    built = str(settings.get("encoder"))
    try:
        spec = naming.parse(given or str(settings.get("place")))
    except UsageError as error:
        raise UsageError(f"{index} was built with encoder {built}; {error}") from error
    if _marks(built) != _marks(spec.name):
        what, there, here = "encoder", built, spec.name
        tokenizer = str(settings.get("tokenizer"))
        if spec.place == settings.get("place") and tokenizer != spec.tokenizer:
            what, there, here = "tokenizer", tokenizer, spec.tokenizer
        raise IndexMismatchError(
            f"{index} was built with {what} {there}, but {here} is here; "
            "take the same one, or build the index again"
        )
    wanted = _settings(spec, str(settings.get("faiss")), settings.get("dimension"))
    # A model may be called otherwise in another folder.
    same = {key: settings.get(key) for key in ("encoder", "place", "tokenizer")}
    index_folder.check_settings(index, manifest, wanted | same)
    return spec


def _marks(name: str) -> list[str]:
    """The convention and the fingerprints in a name, without the names of folders."""
    rules, _, models = name.rpartition(":")
    return [rules, *(model.rpartition("@")[2] for model in models.split(","))]
