"""Sequence classifiers by transformers, for whoever compares pairs of texts."""

from typing import Any

from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

from hopscope.runtime.errors import UsageError
from hopscope.runtime.readers._checkpoint import Checkpoint
from hopscope.runtime.readers._loading import choose_device, quiet, refusal

_LOCAL: Any = {"local_files_only": True, "trust_remote_code": False}


def configuration(checkpoint: Checkpoint) -> Any:
    """A checkpoint's configuration, which tells its outputs before its weights are loaded.

    Raises:
        UsageError: transformers cannot read it.
    """
    with quiet(), refusal(f"{checkpoint.name}: its configuration cannot be used"):
        return AutoConfig.from_pretrained(checkpoint.folder, **_LOCAL)


def load(checkpoint: Checkpoint, config: Any, *, device: str, kind: str) -> tuple[Any, Any]:
    """Model, in single precision, and tokenizer; `kind` names the model in errors.

    Raises:
        UsageError: transformers cannot load it, or it has no trained classifier.
    """
    where = choose_device(device)
    auto_model: Any = AutoModelForSequenceClassification
    with quiet():
        with refusal(f"{checkpoint.name}: its tokenizer cannot be loaded"):
            tokenizer = AutoTokenizer.from_pretrained(checkpoint.folder, **_LOCAL)
        with refusal(f"{checkpoint.name}: its weights cannot be loaded"):
            model, report = auto_model.from_pretrained(
                checkpoint.folder,
                config=config,
                use_safetensors=True,
                dtype="float32",
                output_loading_info=True,
                **_LOCAL,
            )
            model = model.to(where).eval()
    # A checkpoint without a classifier would be given a random one.
    if missing := sorted(report["missing_keys"]):
        raise UsageError(f"{checkpoint.name}: is no trained {kind}, it lacks {missing[0]}")
    return model, tokenizer


def longest(config: Any, tokenizer: Any) -> int:
    """Tokens the model takes; relatives of RoBERTa count positions from their padding index on."""
    positions: int = getattr(config, "max_position_embeddings", None) or 512
    if "roberta" in config.model_type or config.model_type in {"camembert", "longformer"}:
        positions -= (config.pad_token_id or 0) + 1
    limit: int = tokenizer.model_max_length
    return min(positions, limit)
