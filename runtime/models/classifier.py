"""Sequence classifiers by transformers, for comparing pairs of texts."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from hopscope.runtime.errors import UsageError
from hopscope.runtime.models import linear, loading
from hopscope.runtime.models.batches import in_batches
from hopscope.runtime.models.checkpoint import Checkpoint
from hopscope.runtime.models.devices import Precision, choose_device


class Inputs(NamedTuple):
    """A model's input for a pair of texts."""

    fields: tuple[tuple[str, tuple[int, ...]], ...]
    """Named fields: token numbers, mask, and segments if the model has them."""

    @classmethod
    def of(cls, encoded: Mapping[str, list[int]]) -> Self:
        """From a tokenizer's output."""
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
            outputs: Tensor = model(**padded).logits.double()
        return outputs

    return in_batches(pairs, compute, width=lambda pair: pair.tokens, area=area)


def configuration(checkpoint: Checkpoint) -> Any:
    """A checkpoint's configuration, with its outputs, before its weights are loaded.

    Raises:
        UsageError: transformers cannot read it.
    """
    return loading.configuration(checkpoint.folder, checkpoint.name)


def load(
    checkpoint: Checkpoint,
    config: Any,
    *,
    device: str,
    kind: str,
    precision: Precision = "single",
) -> tuple[Any, Any]:
    """Model and tokenizer; `kind` names the model in errors.

    Raises:
        UsageError: transformers cannot load it, it has no trained classifier, or there is nothing
            of this precision for it.
    """
    where = choose_device(device)
    place = checkpoint.folder, checkpoint.name
    tokenizer = loading.tokenizer_of(*place)
    auto_model = AutoModelForSequenceClassification
    model, report = loading.weights(auto_model, *place, device=where, config=config)
    # transformers gives a checkpoint without a classifier a random one.
    if missing := sorted(report["missing_keys"]):
        raise UsageError(f"{checkpoint.name}: is no trained {kind}, it lacks {missing[0]}")
    if config.model_type == "deberta-v2":
        from hopscope.runtime.models import deberta, deberta_packed

        if deberta_packed.packs(model):
            if not linear.multiplies(precision):
                approximations: tuple[Precision, ...] = ("bfloat16", "eight-bits")
                others = [f" or take {each}" for each in approximations if linear.multiplies(each)]
                raise UsageError(
                    f"{checkpoint.name}: precision={precision} needs a processor that multiplies "
                    f"such numbers, which this one does not; leave it out{''.join(others)}"
                )
            deberta_packed.pack(model, linear.build(precision))
            return model, tokenizer
        deberta.keep_near(model)
    if precision != "single":
        raise UsageError(
            f"{checkpoint.name}: precision={precision} is for a DeBERTa of the second or third "
            f"version on the processor (device=cpu); this is {config.model_type} on {where}"
        )
    return model, tokenizer
