"""The forward passes of a model: recorded, and repeated alone."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache

from credit_parts.straightforward import Clock
from hopscope.runtime.generation.caches.roomy import RoomyCache
from hopscope.runtime.generation.caches.transformers_caches import TransformersRoomyCache


class Pass(NamedTuple):
    """A forward pass, by its shape."""

    rows: int
    columns: int
    past: int
    keep: int


@contextmanager
def observed(model: Any) -> Iterator[list[Pass]]:
    """The forward passes of a model while it is used."""
    seen: list[Pass] = []

    def hook(_: object, __: object, given: dict[str, Any]) -> None:
        rows, columns = given["input_ids"].shape
        past = given["attention_mask"].shape[1] - columns
        seen.append(Pass(rows, columns, past, given.get("logits_to_keep", columns)))

    handle = model.register_forward_pre_hook(hook, with_kwargs=True)
    try:
        yield seen
    finally:
        handle.remove()


def weights_of(reader: Any) -> Any:
    """The torch module inside a reader."""
    open_objects: list[Any] = [reader]
    while open_objects:
        for part in vars(open_objects.pop(0)).values():
            if isinstance(part, torch.nn.Module):
                return part
            if type(part).__module__.startswith("hopscope."):
                open_objects.append(part)
    raise SystemExit("the reader holds no torch model: name one of transformers")


def replayed(model: Any, passes: Sequence[Pass], *, roomy: bool) -> Clock:
    """The same forward passes alone, with the reader's cache or else with transformers' own."""
    config, device = model.config, model.device
    clock = Clock()
    heads, size = config.num_key_value_heads, config.head_dim
    with torch.inference_mode():
        for each in passes:
            cache: Any = TransformersRoomyCache() if roomy else DynamicCache(config=config)
            for layer in range(config.num_hidden_layers if each.past else 0):
                length = each.past + each.columns if roomy else each.past
                held = torch.zeros(each.rows, heads, length, size, device=device)
                if isinstance(cache, RoomyCache):
                    cache.fill(held, held.clone(), each.rows, each.past)
                else:
                    cache.update(held, held.clone(), layer)
            ids = torch.ones(each.rows, each.columns, dtype=torch.long, device=device)
            mask = ids.new_ones(each.rows, each.past + each.columns)
            positions = torch.arange(each.past, each.past + each.columns, device=device)[None]
            with clock.running():
                out = model(
                    input_ids=ids,
                    attention_mask=mask,
                    position_ids=positions.expand(each.rows, -1),
                    past_key_values=cache,
                    use_cache=True,
                    logits_to_keep=each.keep,
                )
                out.logits[0, 0, 0].item()  # wait for a GPU
    return clock
