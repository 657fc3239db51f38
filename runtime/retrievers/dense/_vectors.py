"""The vectors of a corpus on disk: encoded window by window, so that a killed build can continue.

Invariant: the progress record is written after the vectors it counts have reached the disk. It
names the corpus, so vectors of different corpora are never mixed. Passages with the same title and
text have the same vector, to the last digit: it is computed once.
"""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from hopscope.runtime.encoders.encoder import Encoder
from hopscope.runtime.errors import RetrieverError
from hopscope.runtime.types import Passage, Record

VECTORS = "vectors.f32"
PROGRESS = "encoded.json"
WINDOW = 512
"""Passages encoded between two writes to the disk."""
Matrix = NDArray[np.float32]
Places = NDArray[np.intp]
Mapped = np.memmap[tuple[int, int], np.dtype[np.float32]]


class Progress(Record):
    """The progress of encoding a corpus."""

    fingerprint: str
    dimension: int
    done: int
    cut: int
    """Passages so far whose end was cut off."""


def encode(
    passages: Sequence[Passage],
    folder: Path,
    encoder: Encoder,
    *,
    fingerprint: str,
    first: Places | None = None,
    report: Callable[[int], None],
) -> tuple[Matrix, int]:
    """The vectors of all passages, mapped from a file, and how many passages were cut.

    Args:
        fingerprint: the fingerprint of the corpus.
        first: for each passage the place of the first that may be equal, by `first_places`.
        report: called with the number of encoded passages.

    Raises:
        RetrieverError: the model failed, or gave vectors that are no numbers.
    """
    state = _resume(folder, fingerprint, len(passages))
    matrix = _map(folder, len(passages), state.dimension) if state else None
    done, cut = (state.done, state.cut) if state else (0, 0)
    report(done)
    while done < len(passages):
        window = passages[done : done + WINDOW]
        known = _known(passages, window, first, done) if first is not None else {}
        new = [at for at in range(done, done + len(window)) if at not in known]
        if new:
            encoded = encoder.passages([window[at - done] for at in new])
            if not np.isfinite(encoded.vectors).all():
                raise RetrieverError(f"{encoder.name} gave vectors that are not finite")
            if matrix is None:
                matrix = _map(folder, len(passages), encoded.vectors.shape[1])
            matrix[new] = encoded.vectors
            cut += encoded.cut
        if known and matrix is not None:
            matrix[list(known)] = matrix[list(known.values())]
            cut += encoder.too_long([window[at - done] for at in known])
        assert matrix is not None, "of the first window nothing is known"
        matrix.flush()
        done += len(window)
        _note(
            folder, Progress(fingerprint=fingerprint, dimension=matrix.shape[1], done=done, cut=cut)
        )
        report(done)
    assert matrix is not None, "a corpus without passages has been refused before"
    return matrix, cut


def first_places(hashes: Sequence[int]) -> Places:
    """For each hash, of 64 bits, its first place."""
    _, first, inverse = np.unique(
        np.asarray(hashes, dtype=np.uint64), return_index=True, return_inverse=True
    )
    return np.asarray(first[inverse])


def _known(
    passages: Sequence[Passage], window: Sequence[Passage], first: Places, done: int
) -> dict[int, int]:
    """The places in a window whose passages occurred earlier, with the earlier place."""
    places = {}
    for at, passage in enumerate(window, done):
        if (place := int(first[at])) < done:
            earlier = passages[place]
            # Two texts may have one hash.
            if (earlier.title, earlier.text) == (passage.title, passage.text):
                places[at] = place
    return places


def remove(folder: Path) -> None:
    """Delete vectors and progress, which the finished index no longer needs."""
    for name in (VECTORS, PROGRESS):
        (folder / name).unlink(missing_ok=True)


def _map(folder: Path, rows: int, dimension: int) -> Mapped:
    path = folder / VECTORS
    size = rows * dimension * np.dtype(np.float32).itemsize
    if not (path.is_file() and path.stat().st_size == size):
        with path.open("wb") as file:
            file.truncate(size)
    return np.memmap(path, dtype=np.float32, mode="r+", shape=(rows, dimension))


def _resume(folder: Path, fingerprint: str, rows: int) -> Progress | None:
    try:
        state = Progress.model_validate_json((folder / PROGRESS).read_bytes())
        size = (folder / VECTORS).stat().st_size
    except (OSError, ValidationError, json.JSONDecodeError):
        return None
    whole = size == rows * state.dimension * np.dtype(np.float32).itemsize
    return state if whole and state.fingerprint == fingerprint and state.done <= rows else None


def _note(folder: Path, state: Progress) -> None:
    new = folder / f"{PROGRESS}.new"
    new.write_text(state.model_dump_json(), encoding="utf-8")
    os.replace(new, folder / PROGRESS)
