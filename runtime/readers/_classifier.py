"""Sequence classifiers by transformers, for whoever compares pairs of texts."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from hopscope.runtime.errors import UsageError
from hopscope.runtime.readers import _loading
from hopscope.runtime.readers._batches import in_batches
from hopscope.runtime.readers._checkpoint import Checkpoint


class Inputs(NamedTuple):
    """A pair of texts as a model is fed it."""

    fields: tuple[tuple[str, tuple[int, ...]], ...]
    """By name: token numbers, mask, segments where the model has them."""

    @classmethod
    def of(cls, encoded: Mapping[str, list[int]]) -> Self:
        """What a tokenizer made of the texts."""
        return cls(tuple((name, tuple(values)) for name, values in encoded.items()))

    @property
    def tokens(self) -> int:
        """The length of all fields."""
        return len(self.fields[0][1])


def logits(model: Any, tokenizer: Any, pairs: Sequence[Inputs], area: int) -> list[Tensor]:
    """The outputs of each pair, (class), in double precision; equal pairs are computed once.

    Args:
        area: rows times positions computed together.
    """

    def compute(batch: list[Inputs]) -> Tensor:
        unpadded = [{name: list(values) for name, values in pair.fields} for pair in batch]
        padded = tokenizer.pad(unpadded, return_tensors="pt").to(model.device)
        with torch.inference_mode():
            found: Tensor = model(**padded).logits.double()
        return found

    return in_batches(pairs, compute, width=lambda pair: pair.tokens, area=area)


def configuration(checkpoint: Checkpoint) -> Any:
    """A checkpoint's configuration, which tells its outputs before its weights are loaded.

    Raises:
        UsageError: transformers cannot read it.
    """
    return _loading.configuration(checkpoint.folder, checkpoint.name)


def load(checkpoint: Checkpoint, config: Any, *, device: str, kind: str) -> tuple[Any, Any]:
    """Model, in single precision, and tokenizer; `kind` names the model in errors.

    Raises:
        UsageError: transformers cannot load it, or it has no trained classifier.
    """
    where = _loading.choose_device(device)
    place = checkpoint.folder, checkpoint.name
    tokenizer = _loading.tokenizer_of(*place)
    auto_model = AutoModelForSequenceClassification
    model, report = _loading.weights(auto_model, *place, device=where, config=config)
    # A checkpoint without a classifier would be given a random one.
    if missing := sorted(report["missing_keys"]):
        raise UsageError(f"{checkpoint.name}: is no trained {kind}, it lacks {missing[0]}")
    if config.model_type == "deberta-v2":
        from hopscope.runtime.readers._deberta import keep_near  # others need not wait for it

        keep_near(model)
    return model, tokenizer
