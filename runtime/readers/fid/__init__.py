"""Fusion-in-Decoder over any model of the T5 family that transformers can load.

The encoder reads each passage alone, together with the question; the decoder attends to all of
them at once. So reading takes time linear in the number of passages, and their order has no effect.

Source: Izacard and Grave: Leveraging Passage Retrieval with Generative Models for Open Domain
Question Answering, EACL 2021 (arXiv 2007.01282), section 3.

`build` checks the checkpoint before it imports torch, as the reader `hf` does.
"""

from hopscope.runtime.components import Count
from hopscope.runtime.models.checkpoint import locate
from hopscope.runtime.models.devices import Device
from hopscope.runtime.models.processor import settle_processor
from hopscope.runtime.ports import Reader
from hopscope.runtime.readers.hf import Dtype

PROMPTS = "fid"
"""The set of prompts that it reads, where the user names none: a passage is a message."""


def build(
    *,
    model: str,
    revision: str | None = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    passage_tokens: Count | None = None,
    max_batch_tokens: Count = 16_384,
) -> Reader:
    """A reader over an encoder-decoder with safetensors weights: T5, mT5 or UMT5.

    Args:
        model: a folder saved with `save_pretrained`, or a hub id (downloaded if not in the cache).
        revision: the hub's branch, tag or commit.
        device: `auto` takes CUDA, then Apple's GPU, then the processor.
        dtype: `auto` is the checkpoint's own on a GPU and float32 on the processor. In half
            precision samples depend on the rest of the batch, unless torch's deterministic
            algorithms are on.
        passage_tokens: most tokens of a passage with the question; the end of a longer one is left
            out, as in the paper, which has 250. None leaves out nothing.
        max_batch_tokens: rows times positions computed together; limits the memory.

    Raises:
        UsageError: the model is missing, cannot be loaded, or is of another kind.
    """
    checkpoint = locate(model, revision)
    settle_processor()
    from hopscope.runtime.readers.fid._loading import load

    return load(
        checkpoint,
        model,
        device=device,
        dtype=dtype,
        passage_tokens=passage_tokens,
        max_batch_tokens=max_batch_tokens,
    )
