"""Any causal language model that transformers can load, from a local folder or the hub.

`build` looks at the checkpoint first and imports torch afterwards, so that a wrong folder is
told at once and listing the readers stays cheap.
"""

import os
from importlib.util import find_spec
from typing import Literal

from pydantic import ByteSize

from hopscope.runtime.components import Bytes, Count
from hopscope.runtime.errors import MissingExtra
from hopscope.runtime.ports import Reader
from hopscope.runtime.readers._checkpoint import locate
from hopscope.runtime.readers._thinking import Thinking

Device = Literal["auto", "cpu", "cuda", "mps"]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
PREFIX_CACHE = ByteSize(512_000_000)


def build(
    *,
    model: str,
    revision: str | None = None,
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
        device: `auto` takes CUDA, then Apple's GPU, then the processor.
        dtype: `auto` is the checkpoint's own on a GPU and float32 on the processor. In half
            precision samples depend on what is computed beside them, unless torch's deterministic
            algorithms are on.
        compiled: by torch.compile, which takes a minute at first and a C++ compiler; then numbers
            are rounded otherwise, so that the reader's name says so.
        max_batch_tokens: rows times positions computed together; bounds the memory used.
        prefix_cache: bytes (512MB, 2GB) of keys and values that are kept of prompts, so that others
            that begin alike are read from where they part; 0 keeps none.
        thinking: whether it thinks before it answers: `auto` is as its chat template has it by
            default, `on`, `off`, or a number of tokens, of which a thought has 4,096 unless told.

    Raises:
        UsageError: the model is not there, cannot be loaded, or would be sampled from wrongly.
        MissingExtra: it is an adapter, and peft is not installed.
    """
    checkpoint = locate(model, revision, adapters=True)
    if checkpoint.adapter is not None and find_spec("peft") is None:
        raise MissingExtra("a LoRA adapter", "lora")
    # OpenMP reads this once, when torch loads. Its threads otherwise spin while they wait, which
    # costs more than tenfold where processors are shared.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from hopscope.runtime.readers._loading import load

    return load(
        checkpoint,
        device=device,
        dtype=dtype,
        compiled=compiled,
        max_batch_tokens=max_batch_tokens,
        prefix_bytes=prefix_cache,
        thinking=thinking,
    )
