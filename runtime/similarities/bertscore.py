"""BERTScore: the similarity of texts to an encoder, token by token.

Zhang, Kishore, Wu, Weinberger, Artzi: BERTScore: Evaluating Text Generation with BERT, ICLR 2020
(arXiv 1904.09675). Each token is matched with the most similar one of the other text by the cosine
of their hidden states; F1 is the harmonic mean of both directions' means. Special tokens are left
out. EoR uses microsoft/deberta-xlarge-mnli, layer 40, with idf over the candidates.
"""

from collections.abc import Sequence
from typing import Protocol

from hopscope.runtime.models.checkpoint import locate
from hopscope.runtime.models.devices import Device
from hopscope.runtime.models.processor import settle_processor


class TextSimilarity(Protocol):
    """Measures the similarity of texts."""

    @property
    def name(self) -> str: ...

    def compare(self, texts: Sequence[str]) -> list[list[float]]:
        """The similarity of each pair, in [0, 1]; 0 for a text without tokens."""
        ...


def build(
    *,
    model: str,
    revision: str | None = None,
    layer: int = -1,
    idf: bool = False,
    device: Device = "auto",
) -> TextSimilarity:
    """BERTScore-F1 over an encoder with safetensors weights.

    Args:
        model: a folder saved with `save_pretrained`, or a hub id (downloaded if not in the cache).
        revision: the hub's branch, tag or commit.
        layer: whose hidden states are compared; 0 is the embeddings, -1 the last layer.
        idf: whether rare tokens count for more; frequencies are those of the compared texts.
        device: `auto` takes CUDA, then Apple's GPU, then the processor.

    Raises:
        UsageError: the model is missing, cannot be loaded, or has no such layer.
    """
    checkpoint = locate(model, revision)
    settle_processor()
    from hopscope.runtime.similarities._encoder import BERTScore, load

    return BERTScore(load(checkpoint, layer=layer, device=device), idf=idf)
