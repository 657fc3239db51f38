"""Sequence classifiers by transformers, for whoever compares pairs of texts."""

from typing import Any

from transformers import AutoModelForSequenceClassification

from hopscope.runtime.errors import UsageError
from hopscope.runtime.readers import _loading
from hopscope.runtime.readers._checkpoint import Checkpoint


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
