"""A reader over an embedded model. It loads without transformers; see `models.llama`."""

from hopscope.runtime.generation.transformers_reader import TransformersReader
from hopscope.runtime.models import llama
from hopscope.runtime.models.checkpoint import Checkpoint
from hopscope.runtime.models.devices import choose_device
from hopscope.runtime.models.fast_tokenizer import FastTokenizer


def load(
    checkpoint: Checkpoint, *, device: str, max_batch_tokens: int, prefix_bytes: int
) -> TransformersReader:
    """Load an embedded model, in single precision.

    Raises:
        UsageError: it is damaged, or the device is missing.
    """
    return TransformersReader(
        llama.load(checkpoint.folder, device=choose_device(device)),
        FastTokenizer(checkpoint.folder),
        name=checkpoint.name,
        max_batch_tokens=max_batch_tokens,
        prefix_bytes=prefix_bytes,
    )
