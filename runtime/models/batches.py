"""Packs work into batches that fit into memory.

The other rows and the width of a batch decide how a row's numbers are rounded. In single precision
that changes the fifth digit or a later one; in half precision it changes the second or third, so
that samples differ. For numbers that do not depend on the batch, each row is computed alone.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch

from hopscope.runtime.distinct import Input, Output, each_once


class Size(NamedTuple):
    """The space of one item in a batch."""

    width: int
    """Positions; a batch is as wide as its widest item."""
    rows: int = 1


def pack(sizes: Sequence[Size], area: int) -> list[list[int]]:
    """Indices of the items, grouped so that rows times width stays within `area`.

    Items of similar width share a batch, the widest first, to save padding. An item larger than
    the area gets its own batch.
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


def must_be_alone() -> bool:
    """Whether each row must be computed in its own batch, as `--deterministic` requires."""
    return torch.are_deterministic_algorithms_enabled()


def in_batches(
    inputs: Sequence[Input],
    compute: Callable[[list[Input]], Iterable[Output]],
    *,
    width: Callable[[Input], int],
    area: int,
) -> list[Output]:
    """One output for each input, in order; equal inputs are computed once, and each in its own
    batch if it must be alone.

    Args:
        compute: computes one batch.
        width: positions of an input.
        area: as in `pack`.
    """

    def packed(distinct: list[Input]) -> list[Output]:
        outputs: dict[int, Output] = {}
        sizes = [Size(width(each)) for each in distinct]
        for batch in pack(sizes, 0 if must_be_alone() else area):
            outputs.update(zip(batch, compute([distinct[i] for i in batch]), strict=True))
        return [outputs[i] for i in range(len(distinct))]

    return each_once(inputs, packed)
