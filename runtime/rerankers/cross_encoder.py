"""A cross-encoder reads query and passage together and scores how relevant the passage is.

The conventions of bge-reranker: the pair goes into a sequence classifier with one output, query
first, and the logit is the score, any real number. A passage that is too long loses its end (that
is counted), and a query more than three quarters of the room loses the rest.

Source: Xiao, Liu, Zhang, Muennighoff: C-Pack, 2023 (arXiv 2309.07597), and FlagEmbedding's
documentation; the idea is Nogueira and Cho: Passage Re-ranking with BERT, 2019 (arXiv 1901.04085).
"""

import os
from typing import Literal

from hopscope.runtime.readers._checkpoint import locate
from hopscope.runtime.stages import Reranker
from hopscope.runtime.types import Passage

Device = Literal["auto", "cpu", "cuda", "mps"]


def build(
    *,
    model: str,
    revision: str | None = None,
    device: Device = "auto",
    max_length: int = 512,
    title: bool = True,
    max_batch_tokens: int = 16_384,
) -> Reranker:
    """A reranker over a sequence classifier with safetensors weights.

    Args:
        model: a folder saved with `save_pretrained`, or a hub id (downloaded if not in the cache).
        revision: the hub's branch, tag or commit.
        device: `auto` takes CUDA, then Apple's GPU, then the processor.
        max_length: tokens of a pair at most, special ones included.
        title: whether the passage is read with its title before its text.
        max_batch_tokens: rows times positions computed together; bounds the memory used.

    Raises:
        UsageError: the model is not there, cannot be loaded, or has another number of outputs.
    """
    checkpoint = locate(model, revision)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # see runtime.readers.hf
    from hopscope.runtime.rerankers._classifier import load

    return load(
        checkpoint,
        device=device,
        max_length=max_length,
        title=title,
        max_batch_tokens=max_batch_tokens,
    )


def passage_text(passage: Passage, *, title: bool) -> str:
    """The passage as the model reads it."""
    return f"{passage.title} {passage.text}" if title and passage.title else passage.text
