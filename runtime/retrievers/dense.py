"""Dense retrieval: passages and queries as vectors, the largest inner products first, by faiss.

Douze et al.: The Faiss library, 2024 (arXiv 2401.08281). `Flat` compares with every passage and
is exact; `HNSW32` (a graph) and `IVF256,PQ48` (lists of codes) give most of the same neighbours
for less time or memory. Encoders and their rules: `hopscope.runtime.encoders`.
"""

import hashlib
import os
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import JsonValue

from hopscope import __version__
from hopscope.runtime import index_folder
from hopscope.runtime.encoders import naming
from hopscope.runtime.encoders.naming import EncoderSpec
from hopscope.runtime.errors import CorpusError, IndexMismatch, RetrieverError, UsageError
from hopscope.runtime.index_folder import Manifest
from hopscope.runtime.ports import Retriever
from hopscope.runtime.retrievers import _faiss, _passages
from hopscope.runtime.retrievers._phases import Progress, silent
from hopscope.runtime.text import storable
from hopscope.runtime.types import Hit, Passage, digest

if TYPE_CHECKING:
    from hopscope.runtime.encoders.encoder import Encoder

KIND = "dense"
INDEX = "dense.faiss"
FLAT = "Flat"
Device = Literal["auto", "cpu", "cuda", "mps"]


class Dense:
    """A searchable corpus. Searching is safe from several threads."""

    def __init__(
        self, name: str, passages: Sequence[Passage], index: Any, encoder: "Encoder"
    ) -> None:
        """`passages` say that they come from `name`."""
        self._name = name
        self._passages = passages
        self._index = index
        self._encoder = encoder
        self._lock = Lock()
        self.queries_cut = 0
        """Queries so far whose end was left out, as they were longer than the encoder reads."""

    @property
    def name(self) -> str:
        """Kind, encoder, faiss factory and search settings, corpus and fingerprint."""
        return self._name

    @property
    def passages(self) -> Sequence[Passage]:
        """All passages by position."""
        return self._passages

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """The `k` passages nearest to each query by inner product, best first; of equal ones the
        earlier in the corpus. A blank query finds nothing.

        Raises:
            RetrieverError: the encoder or faiss failed.
        """
        asked = [at for at, query in enumerate(queries) if query.strip()] if k > 0 else []
        found: list[list[Hit]] = [[] for _ in queries]
        if not asked:
            return found
        # Half of a surrogate pair is no character to a tokenizer.
        texts = [storable(queries[at]) for at in asked]
        encoded = self._encoder.queries(texts)
        if encoded.vectors.shape[1] != self._index.d:
            raise IndexMismatch(
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
        for at, row, positions in zip(asked, scores.tolist(), places.tolist(), strict=True):
            found[at] = [
                Hit(passage=self._passages[place], score=score)
                for score, place in zip(row, positions, strict=True)
                if place >= 0
            ]
        return found


def build(
    *, index: Path, encoder: str = "", search: str = "", device: Device = "auto"
) -> Retriever:
    """Open an index made with `hopscope index build --kind dense`.

    Args:
        index: its folder.
        encoder: the encoder that built it, if it lies elsewhere now, as `e5:FOLDER`.
        search: how thoroughly to search, as `nprobe=32` or `efSearch=128`.
        device: where queries are encoded.

    Raises:
        MissingExtra: faiss is not installed.
        UsageError: the encoder is not there, or faiss does not take `search`.
        IndexMismatch: the folder is no dense index, is damaged, or was built with another encoder,
            tokenizer or dimension.
    """
    manifest = index_folder.read_manifest(index)
    if manifest.kind != KIND:
        raise IndexMismatch(f"{index} is an index of kind {manifest.kind!r}, {KIND!r} is needed")
    settings = manifest.settings
    spec = _encoder(index, manifest, encoder)
    factory = str(settings.get("faiss"))
    vectors = _faiss.read(index / INDEX, factory)
    set_to = _faiss.search_settings(vectors, search)
    how = ",".join(part for part in (spec.name, factory, set_to) if part)
    name = f"{KIND}({how}):{manifest.name}@{manifest.fingerprint[:12]}"
    try:
        passages = _passages.PassageFile(index, source=name)
    except (OSError, ValueError, TypeError) as error:
        raise IndexMismatch(f"{index} is damaged: {error}; build the index again") from error
    found: dict[str, JsonValue] = {"passages": len(passages), "vectors": vectors.ntotal}
    said: dict[str, JsonValue] = dict.fromkeys(found, manifest.counts.get("passages"))
    found["dimension"], said["dimension"] = vectors.d, settings.get("dimension")
    if found != said:
        raise IndexMismatch(f"{index} has {found}, its manifest says {said}; build it again")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # see runtime.readers.hf
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
        folder: where the index is to be.
        name: what the corpus is called.
        encoder: as `encoders.naming.parse` reads it.
        faiss: a factory string.
        device: where passages are encoded.
        batch_tokens: passages times tokens encoded together, which bounds the memory used; else as
            many as suit the device.
        overwrite: whether an index in the folder is replaced.
        progress: told how far it is.

    Raises:
        MissingExtra: faiss is not installed.
        UsageError: the folder is taken, or encoder or factory string cannot be used.
        CorpusError: the passages are broken, or there are none.
        RetrieverError: the encoder or the disk failed.
    """
    spec = naming.parse(encoder)
    _faiss.module()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from hopscope.runtime.encoders.encoder import load
    from hopscope.runtime.retrievers import _vectors

    model = load(spec, device=device, batch_tokens=batch_tokens)
    _faiss.make(faiss, model.passages([Passage(text="a")]).vectors.shape[1])
    rules = spec.convention.model_dump_json()
    key = digest(spec.name, rules)[:12]
    keep = _vectors.PROGRESS
    with index_folder.resuming(folder, overwrite=overwrite, key=key, kept=keep) as new:
        sha = hashlib.sha256()
        count, hashes = 0, array("Q")
        for count, passage in enumerate(_passages.write(passages, new), 1):
            sha.update(digest(passage.id, passage.title, passage.text).encode())
            hashes.append(int(digest(passage.title, passage.text)[:16], 16))
            progress("read", count)
        if not count:
            raise CorpusError("the corpus has no passages: give a file or folder that holds some")
        held = _passages.PassageFile(new)
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
    """The encoder of an index, found where it was or where it is said to be now."""
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
        raise IndexMismatch(
            f"{index} was built with {what} {there}, but {here} is here; "
            "take the same one, or build the index again"
        )
    wanted = _settings(spec, str(settings.get("faiss")), settings.get("dimension"))
    # A model may be called otherwise in another folder.
    same = {key: settings.get(key) for key in ("encoder", "place", "tokenizer")}
    index_folder.check_settings(index, manifest, wanted | same)
    return spec


def _marks(name: str) -> list[str]:
    """The convention and the fingerprints in a name, without what the folders are called."""
    rules, _, models = name.rpartition(":")
    return [rules, *(model.rpartition("@")[2] for model in models.split(","))]
