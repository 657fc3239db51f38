"""The vectors of a corpus on disk: encoded window by window, so that a killed build goes on.

Invariant: the progress record is written after the vectors it counts have reached the disk. It
names the corpus, so vectors of another one are never taken for this one's.
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
"""Passages encoded between two looks at the disk."""
Matrix = NDArray[np.float32]
Mapped = np.memmap[tuple[int, int], np.dtype[np.float32]]


class Progress(Record):
    """How far the encoding of a corpus is."""

    fingerprint: str
    dimension: int
    done: int
    cut: int
    """Passages so far whose end was left out."""


def encode(
    passages: Sequence[Passage],
    folder: Path,
    encoder: Encoder,
    *,
    fingerprint: str,
    report: Callable[[int], None],
) -> tuple[Matrix, int]:
    """The vectors of all passages, mapped from a file, and how many passages were cut.

    Raises:
        RetrieverError: the model failed, or gave vectors that are no numbers.
    """
    state = _resume(folder, fingerprint, len(passages))
    matrix = _map(folder, len(passages), state.dimension) if state else None
    done, cut = (state.done, state.cut) if state else (0, 0)
    report(done)
    while done < len(passages):
        window = passages[done : done + WINDOW]
        encoded = encoder.passages(window)
        if not np.isfinite(encoded.vectors).all():
            raise RetrieverError(f"{encoder.name} gave vectors that are not finite")
        if matrix is None:
            matrix = _map(folder, len(passages), encoded.vectors.shape[1])
        matrix[done : done + len(window)] = encoded.vectors
        matrix.flush()
        done, cut = done + len(window), cut + encoded.cut
        _note(
            folder, Progress(fingerprint=fingerprint, dimension=matrix.shape[1], done=done, cut=cut)
        )
        report(done)
    assert matrix is not None, "a corpus without passages has been refused before"
    return matrix, cut


def remove(folder: Path) -> None:
    """Delete vectors and progress; the index holds what is needed of them."""
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
