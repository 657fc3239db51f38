"""faiss behind a few functions: make an index, write it, map it into memory, search it.

faiss-cpu and faiss-gpu both ship the module `faiss`, which tells which of them is installed. If
faiss finds a GPU, indexes that support it are moved there for building and searching.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopscope.runtime.errors import IndexMismatchError, MissingExtraError, UsageError

BLOCK = 65_536
"""Vectors added at once."""
TRAINING = 262_144
"""Vectors that clusters are learned from, at most; a sample by seed 0 of more."""
SEARCH_DEFAULTS = {"nprobe": 16, "efSearch": 64}
"""Lists looked into and candidates kept; faiss's own, 1 and 16, miss many neighbours."""
_PLACE = re.compile(r"^Error in .* at \S+:\d+: (Error: )?('.*' failed: )?")


def module() -> Any:
    """The module, imported at the first use.

    Raises:
        MissingExtraError: neither package is installed.
    """
    try:
        import faiss
    except ImportError:
        raise MissingExtraError("a dense index", "faiss-cpu") from None
    return faiss


def make(factory: str, dimension: int) -> Any:
    """An empty index for inner products.

    Raises:
        UsageError: faiss cannot make such an index of this dimension.
    """
    faiss = module()
    try:
        return faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise UsageError(
            f"faiss cannot make an index {factory!r} of {dimension} dimensions ({_reason(error)}); "
            "give a factory string such as Flat, HNSW32 or IVF256,PQ48"
        ) from None


def fill(
    index: Any, factory: str, vectors: NDArray[np.float32], report: Callable[[int], None]
) -> Any:
    """Train an index if it needs that, and add all vectors; returns the index to write.

    Raises:
        UsageError: there are too few vectors to train on.
    """
    faiss = module()
    working = on_gpu(index)
    if not working.is_trained:
        try:
            working.train(_sample(vectors))
        except RuntimeError as error:
            raise UsageError(
                f"faiss cannot train {factory!r} on {len(vectors)} passages ({_reason(error)}); "
                "take fewer lists or bits, or Flat"
            ) from None
    for start in range(0, len(vectors), BLOCK):
        working.add(np.ascontiguousarray(vectors[start : start + BLOCK]))
        report(min(start + BLOCK, len(vectors)))
    return working if working is index else faiss.index_gpu_to_cpu(working)


def write(index: Any, path: Path) -> None:
    """Write an index to a file."""
    module().write_index(index, str(path))


def read(path: Path, factory: str) -> Any:
    """Map an index from its file.

    Raises:
        IndexMismatchError: the file is damaged.
    """
    faiss = module()
    # Inverted lists have a separate flag for mapping.
    own = faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY
    flags = own if "IVF" in factory else getattr(faiss, "IO_FLAG_MMAP_IFC", 0)
    if "HNSW" in factory:
        _read_ahead(path)
    try:
        return faiss.read_index(str(path), flags)
    except (RuntimeError, MemoryError) as error:
        raise IndexMismatchError(
            f"{path} cannot be read by faiss: {_reason(error)}; build the index again"
        ) from None


def _read_ahead(path: Path) -> None:
    """Make the system read a file in order in the background. A graph is walked at random: the
    first queries would wait for each of some thousand pages from the disk."""
    if hasattr(os, "posix_fadvise") and path.is_file():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


def search_settings(index: Any, given: str) -> str:
    """Set the search effort of an index: by `given`, such as `nprobe=32,efSearch=128`, else by
    defaults for its kind. Returns the settings, empty for exact indexes. Call it before the index
    is moved to a GPU, which copies the settings.

    Raises:
        UsageError: faiss has no such setting for this index.
    """
    faiss = module()
    space = faiss.ParameterSpace()
    if given:
        try:
            space.set_index_parameters(index, given)
        except RuntimeError as error:
            raise UsageError(
                f"faiss does not take {given!r} for this index ({_reason(error)}); nprobe is for "
                "IVF, efSearch for HNSW"
            ) from None
        return given
    for name, value in SEARCH_DEFAULTS.items():
        try:
            space.set_index_parameter(index, name, value)
        except RuntimeError:
            continue
        return f"{name}={value}"
    return ""


def on_gpu(index: Any) -> Any:
    """The index on the first GPU, if there is one that supports it; else unchanged."""
    faiss = module()
    if not faiss.get_num_gpus():
        return index
    try:
        return faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)
    except RuntimeError:  # HNSW, say, or too large
        return index


def _sample(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    if len(vectors) <= TRAINING:
        return np.ascontiguousarray(vectors)
    chosen = np.random.default_rng(0).choice(len(vectors), TRAINING, replace=False)
    return np.ascontiguousarray(vectors[np.sort(chosen)])


def _reason(error: Exception) -> str:
    """The last part of faiss's message, without the place in its source and the failed
    condition."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return _PLACE.sub("", lines[0]) if lines else type(error).__name__
