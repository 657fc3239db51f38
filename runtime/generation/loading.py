"""A reader over a checkpoint that is brought into memory, or over a model that is there."""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from hopscope.runtime.generation.comparison import compare
from hopscope.runtime.generation.transformers_reader import TransformersReader
from hopscope.runtime.models.architecture import readable
from hopscope.runtime.models.checkpoint import Checkpoint
from hopscope.runtime.models.loading import (
    complete,
    configuration,
    labelled,
    quiet,
    refusal,
    tokenizer_of,
)
from hopscope.runtime.thinking.marks import Thinking


def load(
    checkpoint: Checkpoint,
    *,
    device: str,
    dtype: str,
    compiled: bool,
    max_batch_tokens: int,
    prefix_bytes: int,
    thinking: Thinking = "auto",
) -> TransformersReader:
    """Load a checkpoint.

    Raises:
        UsageError: transformers cannot load it, or the device is missing.
    """
    config = configuration(checkpoint.folder, checkpoint.name)
    architecture = readable(config, checkpoint.name)
    tokenizer = tokenizer_of(checkpoint.vocabulary, checkpoint.name)
    model = complete(
        architecture.auto,
        checkpoint.folder,
        checkpoint.name,
        device=device,
        config=config,
        dtype=dtype,
    )
    if checkpoint.adapter is not None:
        model = _merged(model, checkpoint.adapter, checkpoint.name)
    return reading(
        model,
        tokenizer,
        name=checkpoint.name,
        known=architecture.known,
        compiled=compiled,
        max_batch_tokens=max_batch_tokens,
        prefix_bytes=prefix_bytes,
        thinking=thinking,
    )


def reading(
    model: Any,
    tokenizer: Any,
    *,
    name: str,
    known: bool,
    compiled: bool,
    max_batch_tokens: int,
    prefix_bytes: int,
    thinking: Thinking,
    guard: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> TransformersReader:
    """A reader over a loaded model. Its name tells the precision, and whether it is compiled.

    Args:
        known: whether its kind needs no comparison with its own forward pass.
        compiled: whether to compile it.
        guard: entered for each computation.

    Raises:
        UsageError: it cannot be sampled from, or `thinking` is on and it cannot think.
    """
    if not known:
        compare(model, name)
    label = labelled(model, name)
    if compiled:
        model.compile(dynamic=True)
    if model._compiled_call_impl is not None:
        label += ":compiled"
    with refusal(f"{name}: its configuration cannot be used"):
        return TransformersReader(
            model,
            tokenizer,
            name=label,
            max_batch_tokens=max_batch_tokens,
            prefix_bytes=prefix_bytes,
            thinking=thinking,
            guard=guard,
        )


def _merged(model: Any, adapter: Path, name: str) -> Any:
    """The model with a LoRA adapter added to its weights.

    Raises:
        UsageError: peft cannot load it.
    """
    from peft import LoraConfig, PeftModel

    refused = refusal(f"{name}: the adapter cannot be merged into its base model")
    with quiet(), refused, warnings.catch_warnings():
        config = LoraConfig.from_pretrained(str(adapter))
        # These name modules that peft would import.
        config.auto_mapping = config.megatron_config = None
        warnings.simplefilter("ignore", FutureWarning)  # of peft to itself
        # Missing keys would silently have no effect.
        warnings.filterwarnings("error", message="Found missing adapter keys")
        wrapped = PeftModel.from_pretrained(model, str(adapter), config=config)
        return wrapped.merge_and_unload(safe_merge=True).eval()
