"""A cache that is written in place against transformers' own, which copies."""

import random
from typing import Any

import pytest
import torch
from transformers import DynamicCache

from hopscope.runtime.generation.caches.moving import Run, joined, moved
from hopscope.runtime.generation.caches.roomy import Room, RoomyCache, settled
from hopscope.runtime.models.batches import Size

LAYERS, HEADS, SIZE = 2, 3, 4


def side(generator: torch.Generator, rows: int, tokens: int) -> torch.Tensor:
    return torch.randn(rows, HEADS, tokens, SIZE, generator=generator)


def assert_equal(ours: RoomyCache, theirs: DynamicCache) -> None:
    for one, other in zip(ours.layers, theirs.layers, strict=True):
        assert torch.equal(one.keys, other.keys)
        assert torch.equal(one.values, other.values)


@pytest.mark.parametrize("rows", [0, 2, 9])
@pytest.mark.parametrize("width", [5, 7, 40])
def test_rows_come_and_go_as_in_a_cache_that_copies(rows: int, width: int) -> None:
    """With too little room, as much as at first, and room enough; rows part, end and change
    places. A row that is overwritten before it is copied shows here."""
    generator, dice = torch.Generator().manual_seed(0), random.Random(rows + width)
    start = [(side(generator, 2, 5), side(generator, 2, 5)) for _ in range(LAYERS)]
    ours, theirs = RoomyCache(), DynamicCache()
    for layer, (keys, values) in enumerate(start):
        theirs.update(keys, values, layer)
        if rows:
            runs = [[[(k[row], v[row]) for k, v in start]] for row in range(2)]
        else:
            ours.update(keys.clone(), values.clone(), layer)
    if rows:
        joined(runs, [5, 5], cache=ours, size=Size(max(5, width), rows))
    count = 2
    for step in range(25):
        parents = [dice.randrange(count) for _ in range(dice.randint(1, 9))]
        if dice.random() < 0.5:
            parents = [parents[i] for i in settled(parents)]
        count = len(parents)
        for cache in (ours, theirs):
            cache.reorder_cache(torch.tensor(parents))
        for layer in range(LAYERS):
            keys, values = side(generator, count, 1), side(generator, count, 1)
            assert ours.update(keys, values, layer)[0].shape == (count, HEADS, 6 + step, SIZE)
            theirs.update(keys, values, layer)
        assert_equal(ours, theirs)


def test_what_need_not_move_stays() -> None:
    parents = [0, 0, 1, 3, 3, 3]
    order = settled(parents)
    assert sorted(order) == list(range(6))
    assert [parents[i] for i in order] == [0, 1, 0, 3, 3, 3]
    assert [[5, 5, 7][i] for i in settled([5, 5, 7])] == [5, 5, 7]
    assert settled([]) == []


@pytest.mark.parametrize("kind", [RoomyCache, DynamicCache])
def test_copies_of_a_row_lie_side_by_side_behind_zeros(kind: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    given = [(side(generator, 1, n), side(generator, 1, n)) for n in (2, 4)]
    runs = []
    for (keys, values), copies in zip(given, (3, 1), strict=True):
        alone = RoomyCache()
        alone.fill(keys, values, 1, keys.shape[2])
        runs.append(Run(alone, 0, keys.shape[2], copies))
    cache = kind()
    moved(runs, [], cache=cache, room=Room(0), size=Size(6, 5))
    [layer] = cache.layers
    assert layer.keys.shape == (4, HEADS, 4, SIZE)
    for row in range(3):
        assert torch.equal(layer.keys[row, :, 2:], given[0][0][0])
        assert not layer.keys[row, :, :2].any()
    assert torch.equal(layer.values[3], given[1][1][0])


def test_memory_is_used_again_within_the_bound() -> None:
    like = torch.zeros(HEADS, 1, SIZE)
    large, small = Size(10, 4), Size(5, 2)
    bytes_of_large = 4 * 4 * HEADS * 10 * SIZE
    room = Room(bytes_of_large)
    first = room.tensor(0, 0, like, large)
    assert first.shape == (4, HEADS, 10, SIZE)
    assert room.tensor(0, 0, like, small).data_ptr() == first.data_ptr()
    other = room.tensor(1, 0, like, small)  # another layer's
    assert other.data_ptr() != first.data_ptr()
    again = room.tensor(1, 0, like, small)
    assert again.data_ptr() == other.data_ptr()
    room.shrink()  # the bound leaves nothing for the second
    assert list(room._held) == [(0, 0)]
    assert room.tensor(0, 0, like, large).data_ptr() == first.data_ptr()
    assert room.tensor(0, 0, like.double(), small).dtype == torch.float64
    Room(0).shrink()


def test_of_a_projection_that_holds_more_only_the_keys_are_kept() -> None:
    """As models make them that project queries, keys and values at once."""
    fused = torch.zeros(1, HEADS, 5, 3 * SIZE)
    cache = RoomyCache()
    cache.update(fused[..., :SIZE], fused[..., SIZE : 2 * SIZE], 0)
    [layer] = cache.layers
    for kept in (layer.keys, layer.values):
        assert kept.untyped_storage().nbytes() == kept.nbytes
