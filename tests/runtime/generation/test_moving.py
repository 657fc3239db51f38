"""Rows that move to another cache need little more memory than the two caches' own rows."""

import gc
from typing import Any

import pytest
import torch

from hopscope.runtime.generation.caches import moving
from hopscope.runtime.generation.caches.roomy import Room, RoomyCache
from hopscope.runtime.models.batches import Size

LAYERS, HEADS, SIZE, TOKENS = 12, 2, 5, 40


def alive() -> int:
    """Bytes of all keys and values in memory."""
    memories = {}
    for each in gc.get_objects():
        if type(each) is torch.Tensor and each.dim() in (1, 3, 4) and each.dtype == torch.float16:
            memory = each.untyped_storage()
            memories[memory.data_ptr()] = memory.nbytes()
    return sum(memories.values())


def cache(rows: int, room: Room) -> RoomyCache:
    made = RoomyCache()
    for layer in range(LAYERS):
        like = torch.zeros(HEADS, TOKENS, SIZE, dtype=torch.float16)
        sides = [room.tensor(layer, side, like, Size(TOKENS, rows)) for side in range(2)]
        for place, side in enumerate(sides):
            side[:] = layer + place / 2
        made.fill(sides[0], sides[1], rows, TOKENS)
    return made


@pytest.mark.parametrize("wider", [0, 1], ids=["in the same memory", "in new memory"])
def test_one_layer_is_in_memory_twice(wider: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old cache with eight rows and four that were read become twelve in a cache of eight to
    twelve rows' memory."""
    room = Room(0)
    full = cache(12, room)
    old = RoomyCache()
    for layer in full.layers:
        old.fill(*layer._room, rows=8, tokens=TOKENS)
    read = cache(4, Room(0))
    del full, layer
    before, largest = alive(), 0
    tensor = Room.tensor

    def counted(self: Room, *given: Any) -> torch.Tensor:
        nonlocal largest
        made = tensor(self, *given)
        largest = max(largest, alive())
        return made

    monkeypatch.setattr(Room, "tensor", counted)
    rows = [*(moving.Run(old, i, TOKENS) for i in range(8)), moving.Run(read, 1, TOKENS, copies=4)]
    new = RoomyCache()
    moving.moved(rows, [read], cache=new, room=room, size=Size(TOKENS + wider, 12))
    one_row = 2 * LAYERS * HEADS * SIZE * TOKENS * 2
    assert before == 16 * one_row
    assert largest <= 1.2 * before
    assert alive() <= 1.1 * 12 * one_row
    for number, layer in enumerate(new.layers):
        assert layer.keys.shape == (12, HEADS, TOKENS, SIZE)
        assert (layer.keys == number).all()
        assert (layer.values == number + 0.5).all()
