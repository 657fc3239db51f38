"""Packing of work into batches that fit into memory."""

from collections.abc import Sequence
from typing import NamedTuple


class Size(NamedTuple):
    """What one item takes up in a batch."""

    width: int
    """Positions; a batch is as wide as its widest item."""
    rows: int = 1


def pack(sizes: Sequence[Size], area: int) -> list[list[int]]:
    """Indices of the items, grouped so that rows times width stays within `area`.

    Items of like width come together, the widest first, so that little is padding. An item that
    is larger than the area gets a batch to itself.
    """
    batches: list[list[int]] = []
    width = rows = 0
    for index in sorted(range(len(sizes)), key=lambda i: -sizes[i].width):
        size = sizes[index]
        if not batches or (rows + size.rows) * width > area:
            batches.append([])
            width, rows = size.width, 0
        batches[-1].append(index)
        rows += size.rows
    return batches
