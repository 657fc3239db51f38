"""Passages on disk: JSON lines and the offsets of their beginnings, read on request."""

import json
import mmap
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

import numpy as np
from pydantic import ConfigDict, TypeAdapter

from hopscope.runtime.errors import IndexMismatchError
from hopscope.runtime.types import Passage

TEXTS = "passages.jsonl"
OFFSETS = "passages.offsets.npy"
CHUNK = 512
"""So many passages are read and checked together."""
_read = TypeAdapter(Passage).validate_json
# Ids, titles and texts hardly repeat, so that looking each up among recent strings is for nothing.
_read_many = TypeAdapter(list[Passage], config=ConfigDict(cache_strings="keys")).validate_json


def write(passages: Iterable[Passage], folder: Path) -> Iterator[Passage]:
    """Yield the passages and write each to the folder; the offsets are written at the end."""
    offsets = array("q", [0])
    with (folder / TEXTS).open("wb") as file:
        for passage in passages:
            line = passage.model_dump_json(include={"id", "title", "text"}).encode() + b"\n"
            file.write(line)
            offsets.append(offsets[-1] + len(line))
            yield passage
    np.save(folder / OFFSETS, np.frombuffer(offsets, dtype=np.int64), allow_pickle=False)


class PassageFile(Sequence[Passage]):
    """The passages of an index by position. Memory holds none of them."""

    def __init__(self, folder: Path, *, source: str = "") -> None:
        """
        Args:
            source: the `source` of each passage.
        """
        self._path = folder / TEXTS
        offsets = np.load(folder / OFFSETS, mmap_mode="r", allow_pickle=False)
        size = self._path.stat().st_size
        if offsets.ndim != 1 or int(offsets[-1]) != size:
            raise IndexMismatchError(
                f"{self._path} has {size} bytes, {OFFSETS} says {offsets[-1]}; "
                "build the index again"
            )
        self._table = np.asarray(offsets)
        self._offsets = memoryview(offsets)  # gives single numbers faster, and maps as well
        self._count = len(offsets) - 1
        with self._path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._lines = memoryview(self._bytes)  # slices are no copies
        # Replaces the end of a line: copying the passage would take longer than reading it.
        self._end = b',"source":' + json.dumps(source).encode() + b"}"

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Passage: ...
    @overload
    def __getitem__(self, index: slice) -> list[Passage]: ...
    def __getitem__(self, index: int | slice) -> Passage | list[Passage]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = index + self._count if index < 0 else index
        if not 0 <= at < self._count:
            raise IndexError(index)
        # Without the } and the line end, which each intact line has.
        line = self._bytes[self._offsets[at] : self._offsets[at + 1] - 2]
        try:
            return _read(line + self._end)
        except ValueError:
            raise IndexMismatchError(
                f"{self._path}: passage {at} is damaged; build the index again"
            ) from None

    def read(self, places: Sequence[int]) -> list[Passage]:
        """The passages at these positions, from 0, in the order given. Cheaper than one by one, and
        cheapest in the order of the file.

        Raises:
            IndexMismatchError: one of them is damaged.
        """
        passages: list[Passage] = []
        for begin in range(0, len(places), CHUNK):
            passages += self._chunk(places[begin : begin + CHUNK])
        return passages

    def _chunk(self, places: Sequence[int]) -> list[Passage]:
        # One JSON list. No string holds a raw line end, so that none can span two passages.
        at = np.asarray(places, dtype=np.intp)
        begins, ends = self._table[[at, at + 1]].tolist()
        lines = [self._lines[begin : end - 2] for begin, end in zip(begins, ends, strict=True)]
        text = b"[%b%b]" % ((self._end + b"\n,").join(lines), self._end)
        try:
            passages = _read_many(text)
        except ValueError:
            passages = []
        if len(passages) == len(places):
            return passages
        return [self[at] for at in places]  # names the damaged one
