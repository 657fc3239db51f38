"""Any causal language model that transformers can load, from a local folder or the hub.

`build` looks at the checkpoint first and imports torch afterwards, so that a wrong folder is
told at once and listing the readers stays cheap.
"""

import os
from typing import Literal

from hopscope.runtime.ports import Reader
from hopscope.runtime.readers._checkpoint import locate

Device = Literal["auto", "cpu", "cuda", "mps"]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]


def build(
    *,
    model: str,
    revision: str | None = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    max_batch_tokens: int = 16_384,
) -> Reader:
    """A reader over a causal language model with safetensors weights.

    Args:
        model: a folder saved with `save_pretrained`, or a hub id (downloaded if not in the cache).
        revision: the hub's branch, tag or commit.
        device: `auto` takes CUDA, then Apple's GPU, then the processor.
        dtype: `auto` is the checkpoint's own on a GPU and float32 on the processor.
        max_batch_tokens: rows times positions computed together; bounds the memory used.

    Raises:
        UsageError: the model is not there or cannot be loaded.
    """
    checkpoint = locate(model, revision)
    # OpenMP reads this once, when torch loads. Its threads otherwise spin while they wait, which
    # costs more than tenfold where processors are shared.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from hopscope.runtime.readers._loading import load

    return load(checkpoint, device=device, dtype=dtype, max_batch_tokens=max_batch_tokens)
