"""A cross-encoder reads query and passage together and scores the passage's relevance.

The conventions of bge-reranker: the pair goes into a sequence classifier with one output, query
first, and the logit is the score, any real number. A passage that is too long is cut at the end and
counted; a query is cut at three quarters of the input.

Source: Xiao, Liu, Zhang, Muennighoff: C-Pack, 2023 (arXiv 2309.07597), and FlagEmbedding's
documentation; the idea is Nogueira and Cho: Passage Re-ranking with BERT, 2019 (arXiv 1901.04085).
"""

from hopscope.runtime.models.checkpoint import locate
from hopscope.runtime.models.devices import Device
from hopscope.runtime.models.processor import settle_processor
from hopscope.runtime.stages import Reranker


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
        max_length: most tokens of a pair, special ones included.
        title: whether to put the passage's title before its text.
        max_batch_tokens: rows times positions computed together; limits the memory.

    Raises:
        UsageError: the model is missing, cannot be loaded, or has several outputs.
    """
    checkpoint = locate(model, revision)
    settle_processor()
    from hopscope.runtime.rerankers._classifier import load

    return load(
        checkpoint,
        device=device,
        max_length=max_length,
        title=title,
        max_batch_tokens=max_batch_tokens,
    )
