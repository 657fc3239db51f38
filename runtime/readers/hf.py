"""Any causal language model that transformers can load, from a local folder or the hub.

`build` checks the checkpoint before it imports torch, so that a wrong folder is reported at once
and listing the readers stays cheap.
"""

from importlib.util import find_spec
from typing import Literal

from pydantic import ByteSize

from hopscope.runtime.components import Bytes, Count
from hopscope.runtime.errors import MissingExtraError
from hopscope.runtime.models.checkpoint import locate, locate_adapted
from hopscope.runtime.models.devices import Device
from hopscope.runtime.models.processor import settle_processor
from hopscope.runtime.ports import Reader
from hopscope.runtime.thinking.marks import Thinking

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
PREFIX_CACHE = ByteSize(512_000_000)


def build(
    *,
    model: str,
    revision: str | None = None,
    adapter: str | None = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    compiled: bool = False,
    max_batch_tokens: Count = 16_384,
    prefix_cache: Bytes = PREFIX_CACHE,
    thinking: Thinking = "auto",
) -> Reader:
    """A reader over a causal language model with safetensors weights.

    Args:
        model: a folder saved with `save_pretrained`, or a hub id (downloaded if not in the cache);
            a LoRA adapter, which names its base model, is merged into that (extra `lora`).
        revision: the hub's branch, tag or commit.
        adapter: a folder or hub id of a LoRA adapter to merge into `model`, its base model,
            whatever base it names.
        device: `auto` takes CUDA, then Apple's GPU, then the processor.
        dtype: `auto` is the checkpoint's own on a GPU and float32 on the processor. In half
            precision samples depend on the rest of the batch, unless torch's deterministic
            algorithms are on.
        compiled: use torch.compile, which needs a C++ compiler and a minute at the start. Results
            are rounded differently, so the reader's name tells it.
        max_batch_tokens: rows times positions computed together; limits the memory.
        prefix_cache: bytes (512MB, 2GB) for the keys and values of prompts, so that only the new
            part of a prompt with the same beginning is computed; 0 is no cache.
        thinking: whether the model thinks before it answers: `auto` is the default of its chat
            template; `on`; `off`; or the most tokens of a thought (4,096 by default).

    Raises:
        UsageError: the model is missing, cannot be loaded, or would give wrong samples.
        MissingExtraError: the model is an adapter, and peft is not installed.
    """
    if adapter is None:
        checkpoint = locate(model, revision, adapters=True)
    else:
        checkpoint = locate_adapted(model, adapter, revision)
    if checkpoint.adapter is not None and find_spec("peft") is None:
        raise MissingExtraError("a LoRA adapter", "lora")
    settle_processor()
    from hopscope.runtime.generation.loading import load

    return load(
        checkpoint,
        device=device,
        dtype=dtype,
        compiled=compiled,
        max_batch_tokens=max_batch_tokens,
        prefix_bytes=prefix_cache,
        thinking=thinking,
    )
