"""Caches of keys and values for a model's forward passes."""

from typing import Any, Protocol

from hopscope.runtime.generation.caches.roomy import RoomyCache
from hopscope.runtime.models.llama import Llama


class Caches(Protocol):
    """Makes caches for one model."""

    @property
    def cuttable(self) -> bool:
        """Whether all layers have keys and values, which can be sliced; others have a state."""
        ...

    def empty(self, spare: int = 0) -> Any:
        """An empty cache. If its rows can grow in place, it has room for so many tokens to
        follow the first."""
        ...


class RoomyCaches:
    """For a model that takes any cache."""

    cuttable = True

    def empty(self, spare: int = 0) -> RoomyCache:
        """An empty cache."""
        return RoomyCache(spare)


def caches_of(model: Any) -> Caches:
    """The caches that a model takes."""
    if isinstance(model, Llama):
        return RoomyCaches()
    from hopscope.runtime.generation.caches.transformers_caches import TransformersCaches

    return TransformersCaches(model)
