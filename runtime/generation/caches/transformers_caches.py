"""The caches that transformers' models take. Many of them look into their cache, so it must be
theirs."""

from typing import Any

from transformers import DynamicCache
from transformers.cache_utils import Cache, DynamicLayer, DynamicSlidingWindowLayer

from hopscope.runtime.generation.caches.roomy import RoomyCache, RoomyLayer


class TransformersLayer(RoomyLayer, DynamicLayer):  # type: ignore[misc]  # there they may be None
    """One layer with spare room."""


class TransformersRoomyCache(RoomyCache, Cache):
    """A cache with spare room."""

    kind = TransformersLayer

    def __init__(self) -> None:
        Cache.__init__(self, layer_class_to_replicate=TransformersLayer)
        self._spare = 0


class TransformersCaches:
    """Makes caches for one model."""

    def __init__(self, model: Any) -> None:
        self._config = model.config
        kinds = {type(layer) for layer in DynamicCache(config=self._config).layers}
        self.cuttable = kinds <= {DynamicLayer, DynamicSlidingWindowLayer}
        """Whether all layers have keys and values, which can be sliced; others have a state."""
        # A compiled model does not accept a tensor together with a view of it.
        self._in_place = model._compiled_call_impl is None

    def empty(self, spare: int = 0) -> Any:
        """An empty cache, without room: rows move to another before they grow."""
        if not self.cuttable:
            return DynamicCache(config=self._config)
        return TransformersRoomyCache() if self._in_place else DynamicCache()
