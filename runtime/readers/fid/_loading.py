"""A reader over a checkpoint of the T5 family."""

from typing import Any

from transformers import AutoModelForSeq2SeqLM

from hopscope.runtime.errors import UsageError
from hopscope.runtime.models.architecture import FUSED, readable
from hopscope.runtime.models.checkpoint import Checkpoint
from hopscope.runtime.models.loading import (
    complete,
    configuration,
    labelled,
    refusal,
    tokenizer_of,
)
from hopscope.runtime.readers.fid._reader import FiDReader


def load(
    checkpoint: Checkpoint,
    model: str,
    *,
    device: str,
    dtype: str,
    passage_tokens: int | None,
    max_batch_tokens: int,
) -> FiDReader:
    """Load a checkpoint.

    Args:
        model: the text that names it, for errors.

    Raises:
        UsageError: it is of another kind, transformers cannot load it, or the device is missing.
    """
    config = configuration(checkpoint.folder, checkpoint.name)
    _check(config, checkpoint.name, model)
    tokenizer = tokenizer_of(checkpoint.folder, checkpoint.name)
    loaded = complete(
        AutoModelForSeq2SeqLM,
        checkpoint.folder,
        checkpoint.name,
        device=device,
        config=config,
        dtype=dtype,
    )
    name = labelled(loaded, checkpoint.name)
    if passage_tokens is not None:
        name += f":passage_tokens={passage_tokens}"
    with refusal(f"{checkpoint.name}: its configuration cannot be used"):
        return FiDReader(
            loaded,
            tokenizer,
            name=name,
            passage_tokens=passage_tokens,
            max_batch_tokens=max_batch_tokens,
        )


def _check(config: Any, name: str, model: str) -> None:
    """
    Raises:
        UsageError: the model has no encoder, or another than T5's.
    """
    kind = config.model_type
    if kind in FUSED:
        return
    try:
        readable(config, name)
    except UsageError:
        raise UsageError(
            f"{name} is a {kind}; fid reads encoder-decoders of the T5 family alone "
            f"({', '.join(sorted(FUSED))}): name one, or another reader (docs/readers.md)"
        ) from None
    raise UsageError(
        f"{name} is a {kind}, which has no encoder that could read passages apart; read it as "
        f"hf:{model}"
    )
