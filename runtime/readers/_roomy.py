"""Keys and values with room behind them: what is new is written in place, and of rows that part
only those are copied that have no place yet. transformers' own cache copies all of it for every
token."""

from math import prod
from typing import Any

from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer

from hopscope.runtime.readers._batches import Size


class RoomyLayer(DynamicLayer):
    """One layer; its tensors are (row, head, token, coordinate)."""

    keys: Tensor
    values: Tensor
    _room: tuple[Tensor, Tensor]
    """What `keys` and `values` show the first rows and tokens of."""

    def fill(self, keys: Tensor, values: Tensor, rows: int, tokens: int) -> None:
        """Take over tensors of which the first rows and tokens are in use."""
        self.dtype, self.device = keys.dtype, keys.device
        self.is_initialized = True
        self._room = (keys, values)
        self._show(rows, tokens)

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Append, as transformers' models ask for it."""
        if not self.is_initialized:
            shape = key_states.shape
            self.fill(_alone(key_states), _alone(value_states), shape[0], shape[2])
        else:
            rows, start = self.keys.shape[0], self.keys.shape[2]
            end = start + key_states.shape[2]
            if end > self._room[0].shape[2]:
                self._room = (_widened(self.keys, end), _widened(self.values, end))
            self._room[0][:rows, :, start:end] = key_states
            self._room[1][:rows, :, start:end] = value_states
            self._show(rows, end)
        return self.keys, self.values

    def take(self, order: Tensor, moved: Tensor) -> None:
        """Row i becomes what row `order[i]` was, which is another for those `moved`."""
        rows, tokens = len(order), self.keys.shape[2]
        if rows > len(self._room[0]):
            keys, values = (side.index_select(0, order) for side in (self.keys, self.values))
            self.fill(keys, values, rows, tokens)
            return
        if len(moved):
            for side in self._room:
                held = side[:, :, :tokens]
                held.index_copy_(0, moved, held.index_select(0, order[moved]))
        self._show(rows, tokens)

    def _show(self, rows: int, tokens: int) -> None:
        keys, values = self._room
        self.keys, self.values = keys[:rows, :, :tokens], values[:rows, :, :tokens]


class RoomyCache(Cache):
    """A model's layers."""

    def __init__(self) -> None:
        super().__init__(layer_class_to_replicate=RoomyLayer)

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Row i becomes what row `beam_idx[i]` was."""
        stay = beam_idx.new_tensor(range(len(beam_idx)))
        moved = (beam_idx != stay).nonzero().squeeze(-1)
        layers: Any = self.layers
        for layer in layers:
            layer.take(beam_idx, moved)

    def fill(self, keys: Tensor, values: Tensor, rows: int, tokens: int) -> None:
        """One more layer, see there."""
        make: Any = RoomyLayer  # its base is not typed
        layer = make()
        layer.fill(keys, values, rows, tokens)
        self.layers.append(layer)


class Room:
    """Memory that one cache after the other is written to, `limit` bytes of it at most: what is
    new to a process costs it more than the copying, as the system clears every page."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[tuple[int, int], Tensor] = {}
        """By layer and side; of one dimension."""

    def tensor(self, layer: int, side: int, like: Tensor, size: Size) -> Tensor:
        """Of undefined content, (row, head, token, coordinate), for keys or values like these of
        one row. What was written before to the same layer and side is lost."""
        shape = (size.rows, like.shape[0], size.width, like.shape[2])
        count = prod(shape)
        if like.device.type != "cpu":  # other devices' memory is not given back in between
            return like.new_empty(shape)
        held = self._held.pop((layer, side), None)
        if held is None or held.dtype != like.dtype or held.numel() < count:
            held = like.new_empty(count)
        if held.nbytes + sum(other.nbytes for other in self._held.values()) <= self._limit:
            self._held[layer, side] = held
        return held[:count].view(shape)


def settled(parents: list[int]) -> list[int]:
    """An order of rows, given by the places they come from, in which as many as can be stay where
    they come from."""
    order: list[int | None] = [None] * len(parents)
    waiting = []
    for row, parent in enumerate(parents):
        if parent < len(parents) and order[parent] is None:
            order[parent] = row
        else:
            waiting.append(row)
    left = iter(waiting)
    return [next(left) if row is None else row for row in order]


def _alone(side: Tensor) -> Tensor:
    """Without what else its memory holds: queries, where a model projects all three at once."""
    return side.clone() if side.untyped_storage().nbytes() > side.nbytes else side


def _widened(side: Tensor, tokens: int) -> Tensor:
    rows, heads, before, size = side.shape
    wide = side.new_empty(rows, heads, tokens, size)
    wide[:, :, :before] = side
    return wide
