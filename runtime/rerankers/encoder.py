"""A bi-encoder ranks candidates by the inner product of the vectors of query and passage.

Dense retrieval ranks a whole corpus; this ranks the candidates of another retriever, without an
index of vectors. EoR's @RR is this, with Contriever. The encoder's own rules apply
(`runtime.encoders`); a candidate that is too long is cut at the end and counted.

Source: Li, Li, Chen, Xuan, Zhang 2024 (arXiv 2405.20680), section 2.1; Reimers and Gurevych:
Sentence-BERT, EMNLP 2019 (arXiv 1908.10084).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hopscope.runtime.encoders import naming
from hopscope.runtime.errors import ReaderError, RetrieverError
from hopscope.runtime.models.devices import Device
from hopscope.runtime.models.processor import settle_processor
from hopscope.runtime.stages import Candidates, Reranker, Reranking
from hopscope.runtime.texts.storable import storable
from hopscope.runtime.types import Hit, Passage

if TYPE_CHECKING:
    from hopscope.runtime.encoders.encoder import Encoded, Vectors


class VectorEncoder(Protocol):
    """Queries and passages as vectors."""

    @property
    def name(self) -> str: ...

    def queries(self, texts: Sequence[str]) -> "Encoded": ...

    def passages(self, passages: Sequence[Passage]) -> "Encoded": ...


@dataclass(frozen=True)
class ByEncoder:
    """See the module."""

    encoder: VectorEncoder

    @property
    def name(self) -> str:
        return f"encoder:{self.encoder.name}"

    def rerank(self, asked: Sequence[Candidates]) -> list[Reranking]:
        """See the protocol; ties keep their order. Passages of all queries are computed together,
        and equal passages once.

        Raises:
            ReaderError: the encoder failed.
        """
        # Half of a surrogate pair is no character to a tokenizer.
        texts = [storable(each.query) for each in asked if each.hits]
        if not texts:
            return [Reranking(()) for _ in asked]
        try:
            queries = iter(self.encoder.queries(texts).vectors)
            encoded = self.encoder.passages([hit.passage for each in asked for hit in each.hits])
        except RetrieverError as error:
            raise ReaderError(str(error)) from error
        vectors, over = iter(encoded.vectors), iter(encoded.over)
        results = []
        for each in asked:
            hits: tuple[Hit, ...] = ()
            if each.hits:
                own = np.array(list(islice(vectors, len(each.hits))))
                hits = _ranked(each.hits, own, next(queries))
            results.append(Reranking(hits, cut=sum(islice(over, len(each.hits)))))
        return results


def _ranked(hits: Sequence[Hit], vectors: "Vectors", query: "Vectors") -> tuple[Hit, ...]:
    # Each vector once, since the rows of a product may be rounded differently.
    distinct, places = np.unique(vectors, axis=0, return_inverse=True)
    scores = (distinct @ query)[places.reshape(-1)].tolist()
    scored = (
        hit.model_copy(update={"score": score}) for hit, score in zip(hits, scores, strict=True)
    )
    return tuple(sorted(scored, key=lambda hit: -hit.score))


def build(*, model: str, device: Device = "auto") -> Reranker:
    """
    Args:
        model: as `hopscope index build --encoder` takes it: `minilm`, `e5:FOLDER_OR_ID`.
        device: `auto` takes CUDA, then Apple's GPU, then the processor.

    Raises:
        UsageError: no such convention or model.
        MissingExtraError: the package with MiniLM is not installed.
    """
    spec = naming.parse(model)
    settle_processor()
    from hopscope.runtime.encoders.encoder import load

    return ByEncoder(load(spec, device=device))
