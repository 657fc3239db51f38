"""A cache of keys and values with spare room: new tokens are written in place, and only rows that
move are copied. transformers' own cache copies everything for every token."""

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from hopscope.runtime.models.batches import Size


class RoomyLayer:
    """One layer; its tensors are (row, head, token, coordinate)."""

    keys: Tensor
    values: Tensor
    dtype: torch.dtype
    device: torch.device
    is_initialized = False
    spare = 0
    """Columns for further tokens, in a layer whose first tokens come by `update`."""
    _room: tuple[Tensor, Tensor]
    """The tensors of which `keys` and `values` are the first rows and some of the columns."""
    _first = 0
    """The first column shown; those before it are padding in every row."""

    @property
    def _end(self) -> int:
        """The column after the last token."""
        return self._first + self.keys.shape[2]

    def fill(self, keys: Tensor, values: Tensor, rows: int, tokens: int) -> None:
        """Use these tensors; their first `rows` and `tokens` are filled."""
        self.dtype, self.device = keys.dtype, keys.device
        self.is_initialized = True
        self._room = (keys, values)
        self._show(rows, 0, tokens)

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Append, by the interface of transformers' models."""
        if not self.is_initialized:
            rows, tokens = key_states.shape[0], key_states.shape[2]
            wide = tokens + self.spare
            self.fill(_alone(key_states, wide), _alone(value_states, wide), rows, tokens)
        else:
            rows, start = self.keys.shape[0], self._end
            end = start + key_states.shape[2]
            if end > self.columns:
                start, end = start - self._first, end - self._first
                self.widen(end)
            self._room[0][:rows, :, start:end] = key_states
            self._room[1][:rows, :, start:end] = value_states
            self._show(rows, self._first, end)
        return self.keys, self.values

    @property
    def columns(self) -> int:
        """Columns that there is room for."""
        return self._room[0].shape[2]

    def widen(self, columns: int) -> None:
        """Move what is shown to tensors of so many columns."""
        rows, _, tokens, _ = self.keys.shape
        self.fill(_widened(self.keys, columns), _widened(self.values, columns), rows, tokens)

    def take(self, order: Tensor, moved: Tensor) -> None:
        """Row i becomes the old row `order[i]`, a different one for the rows in `moved`."""
        rows, end = len(order), self._end
        if rows > len(self._room[0]):
            keys, values = (side.index_select(0, order) for side in (self.keys, self.values))
            self.fill(keys, values, rows, end - self._first)
            return
        if len(moved):
            for side in self._room:
                held = side[:, :, :end]
                held.index_copy_(0, moved, held.index_select(0, order[moved]))
        self._show(rows, self._first, end)

    def has_room(self, rows: int, tokens: int) -> bool:
        """Whether so many rows of at most so many tokens, and one token more, need no copying."""
        slots, _, columns, _ = self._room[0].shape
        return rows <= slots and tokens <= self._end < columns

    def join(self, rows: Sequence[tuple[Tensor, Tensor]], copies: Sequence[int]) -> None:
        """Append rows, (head, token, coordinate), each so many times; there must be room."""
        end, at = self._end, len(self.keys)
        for row, times in zip(rows, copies, strict=True):
            for side, new in zip(self._room, row, strict=True):
                same = side[at : at + times]
                start = end - new.shape[1]
                same[:, :, :start] = 0  # nothing attends to it, but it must be finite
                same[:, :, start:end] = new
            at += times
        self._show(at, self._first, end)

    def show_last(self, tokens: int) -> None:
        """Show so many columns, the last ones: all others are padding."""
        self._show(len(self.keys), self._end - tokens, self._end)

    def _show(self, rows: int, first: int, end: int) -> None:
        keys, values = self._room
        self._first = first
        self.keys, self.values = keys[:rows, :, first:end], values[:rows, :, first:end]


class RoomyCache:
    """The cache of all layers of a model."""

    kind: type[RoomyLayer] = RoomyLayer

    def __init__(self, spare: int = 0) -> None:
        """`spare`: columns for further tokens, if the first come by `update`."""
        self.layers: list[Any] = []
        self._spare = spare

    @property
    def tokens(self) -> int:
        """Columns that are shown."""
        return self.layers[0].keys.shape[2] if self.layers else 0

    @property
    def columns(self) -> int:
        """Columns that there is room for."""
        return self.layers[0].columns if self.layers else 0

    @property
    def device(self) -> torch.device:
        """Where its layers are, once it has some."""
        found: torch.device = self.layers[0].device
        return found

    def widen(self, columns: int) -> None:
        """Make room for so many columns; what is shown is copied."""
        for layer in self.layers:
            layer.widen(columns)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Append to a layer; returns all of its keys and values."""
        while len(self.layers) <= layer_idx:
            self.layers.append(self.kind())
            self.layers[-1].spare = self._spare
        shown: tuple[Tensor, Tensor] = self.layers[layer_idx].update(key_states, value_states)
        return shown

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Row i becomes the old row `beam_idx[i]`."""
        stay = beam_idx.new_tensor(range(len(beam_idx)))
        moved = (beam_idx != stay).nonzero().squeeze(-1)
        for layer in self.layers:
            layer.take(beam_idx, moved)

    def fill(self, keys: Tensor, values: Tensor, rows: int, tokens: int) -> None:
        """Add a layer; see `RoomyLayer.fill`."""
        layer = self.kind()
        layer.fill(keys, values, rows, tokens)
        self.layers.append(layer)

    def has_room(self, rows: int, tokens: int) -> bool:
        """See `RoomyLayer.has_room`."""
        return all(layer.has_room(rows, tokens) for layer in self.layers)

    def join(self, rows: Sequence[Sequence[tuple[Tensor, Tensor]]], copies: Sequence[int]) -> None:
        """Append rows, given by their layers, each so many times; there must be room."""
        for number, layer in enumerate(self.layers):
            layer.join([row[number] for row in rows], copies)

    def show_last(self, tokens: int) -> None:
        """Show so many columns, the last ones: all others are padding."""
        for layer in self.layers:
            layer.show_last(tokens)


class Room:
    """Memory that consecutive caches reuse: fresh memory costs more than the copying, since the
    system clears every page, and the freed one seldom fits the next cache. When no rows are left,
    at most `limit` bytes stay."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[tuple[int, int], Tensor] = {}
        """One-dimensional tensors by layer and side."""

    def tensor(self, layer: int, side: int, like: Tensor, size: Size) -> Tensor:
        """An uninitialised tensor (row, head, token, coordinate) for keys or values shaped like the
        row `like`. It overwrites the previous tensor of the same layer and side."""
        shape = (size.rows, like.shape[0], size.width, like.shape[2])
        count = prod(shape)
        if like.device.type != "cpu":  # torch itself keeps the memory of other devices
            return like.new_empty(shape)
        memory = self._held.pop((layer, side), None)
        if memory is None or memory.dtype != like.dtype or memory.numel() < count:
            memory = like.new_empty(count)
        self._held[layer, side] = memory
        return memory[:count].view(shape)

    def shrink(self) -> None:
        """Release what exceeds the limit; call it when no cache is in use."""
        size = sum(memory.nbytes for memory in self._held.values())
        while size > self._limit:
            _, memory = self._held.popitem()
            size -= memory.nbytes


def settled(parents: list[int]) -> list[int]:
    """The same rows, given by their old places, in an order that leaves as many as possible at
    their old place."""
    order: list[int | None] = [None] * len(parents)
    waiting = []
    for row, parent in enumerate(parents):
        if parent < len(parents) and order[parent] is None:
            order[parent] = row
        else:
            waiting.append(row)
    left = iter(waiting)
    return [next(left) if row is None else row for row in order]


def _alone(side: Tensor, columns: int) -> Tensor:
    """With room for so many tokens; without the rest of its memory, such as queries, if a model
    projects all three at once."""
    tokens = side.shape[2]
    if columns == tokens and side.untyped_storage().nbytes() == side.nbytes:
        return side
    return _widened(side, columns)


def _widened(side: Tensor, tokens: int) -> Tensor:
    rows, heads, before, size = side.shape
    wide = side.new_empty(rows, heads, tokens, size)
    wide[:, :, :before] = side
    return wide
