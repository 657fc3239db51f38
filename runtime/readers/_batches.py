"""Packing of work into batches that fit into memory."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from hopscope.runtime.distinct import Input, Output, each_once


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


def in_batches(
    inputs: Sequence[Input],
    compute: Callable[[list[Input]], Iterable[Output]],
    *,
    width: Callable[[Input], int],
    area: int,
) -> list[Output]:
    """One output for each input, in order; equal inputs are computed once.

    Args:
        compute: what to do with a batch.
        width: positions of an input.
        area: as `pack` takes it.
    """

    def packed(distinct: list[Input]) -> list[Output]:
        outputs: dict[int, Output] = {}
        for batch in pack([Size(width(each)) for each in distinct], area):
            outputs.update(zip(batch, compute([distinct[i] for i in batch]), strict=True))
        return [outputs[i] for i in range(len(distinct))]

    return each_once(inputs, packed)
