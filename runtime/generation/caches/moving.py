"""Rows of keys and values move to a new cache, one layer after the other, so that only one layer is
in memory twice."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from hopscope.runtime.generation.caches.roomy import Room, RoomyCache
from hopscope.runtime.models.batches import Size

Layers = list[tuple[Tensor, Tensor]]
"""Keys and values of a run of tokens, for each layer, (head, token, coordinate)."""


class Run(NamedTuple):
    """The keys and values of a whole sequence: a row of a cache that ends in them."""

    cache: Any
    row: int
    tokens: int
    copies: int = 1
    """Rows that it becomes."""

    def layer(self, number: int) -> tuple[Tensor, Tensor]:
        """Views of a layer's keys and values, (head, token, coordinate)."""
        layer = self.cache.layers[number]
        return (
            layer.keys[self.row, :, -self.tokens :],
            layer.values[self.row, :, -self.tokens :],
        )

    def layers(self) -> Layers:
        """Views of all keys and values."""
        return [self.layer(number) for number in range(len(self.cache.layers))]

    def cut(self, start: int, stop: int) -> Layers:
        """Views from one token up to another."""
        return [(k[:, start:stop], v[:, start:stop]) for k, v in self.layers()]


def moved(rows: Sequence[Run], used: Sequence[Any], *, cache: Any, room: Room, size: Size) -> None:
    """Write rows to an empty cache, padded on the left to the longest. Each layer is released as
    soon as it is written, in the caches of the rows and in those `used` up: they are worthless
    afterwards.

    Args:
        size: the room of the cache, unless it is transformers'.
    """
    spent = {id(each): each for each in (*used, *(run.cache for run in rows))}.values()
    lengths = [run.tokens for run in rows]
    copies = [run.copies for run in rows]
    for layer in range(len(rows[0].cache.layers)):
        _layer([[run.layer(layer)] for run in rows], lengths, copies, layer, cache, room, size)
        for each in spent:
            each.layers[layer] = None


def joined(
    rows: Sequence[Iterable[Layers]],
    tokens: Sequence[int],
    *,
    cache: Any,
    size: Size,
) -> None:
    """Write the first `tokens` of each row's runs to an empty cache, padded on the left to the most
    tokens. The cache has room for `size`, unless it is transformers'."""
    runs = [list(row) for row in rows]
    for layer in range(len(next(row[0] for row in runs if row))):
        parts = [[run[layer] for run in row] for row in runs]
        _layer(parts, tokens, [1] * len(runs), layer, cache, Room(0), size)


def _layer(
    rows: Sequence[Sequence[tuple[Tensor, Tensor]]],
    tokens: Sequence[int],
    copies: Sequence[int],
    layer: int,
    cache: Any,
    room: Room,
    size: Size,
) -> None:
    """Write a layer of rows, each given by its consecutive runs."""
    width = max(tokens)
    if not isinstance(cache, RoomyCache):  # which copies what it is given
        room = Room(0)
    sides = []
    for side in range(2):
        parts = [[run[side] for run in row] for row in rows]
        like = next(row[0] for row in parts if row)
        full = room.tensor(layer, side, like, size)
        memory = full.untyped_storage().data_ptr()
        parts = [
            [run.clone() if run.untyped_storage().data_ptr() == memory else run for run in row]
            for row in parts
        ]  # what is in the memory that is used again would be overwritten before it is copied
        first = 0
        for own, length, times in zip(parts, tokens, copies, strict=True):
            same = full[first : first + times]
            first += times
            column = width - length
            same[:, :, :column] = 0  # nothing attends to it, but it must be finite
            for run in own:
                part = run[:, : width - column]
                same[:, :, column : column + part.shape[1]] = part
                column += part.shape[1]
        sides.append(full)
    if isinstance(cache, RoomyCache):
        cache.fill(sides[0], sides[1], sum(copies), width)
    else:
        shown = [side[: sum(copies), :, :width] for side in sides]
        cache.update(*shown, layer)
