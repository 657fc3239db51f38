"""A bi-encoder puts candidates in order: by the inner product of the vectors of query and passage.

What dense retrieval does over a whole corpus, done here over what another retriever found: no index
of vectors is needed, and words decide what is looked at. EoR's @RR is this, with Contriever. The
encoder's own rules hold (`runtime.encoders`); a candidate that is too long loses its end, and is
counted.

Source: Li, Li, Chen, Xuan, Zhang 2024 (arXiv 2405.20680), section 2.1; Reimers and Gurevych:
Sentence-BERT, EMNLP 2019 (arXiv 1908.10084).
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from hopscope.runtime.encoders import naming
from hopscope.runtime.errors import ReaderError, RetrieverError
from hopscope.runtime.stages import Candidates, Reranked, Reranker
from hopscope.runtime.text import storable
from hopscope.runtime.types import Hit, Passage

if TYPE_CHECKING:
    from hopscope.runtime.encoders.encoder import Encoded, Vectors

Device = Literal["auto", "cpu", "cuda", "mps"]


class Encoder(Protocol):
    """Queries and passages as vectors."""

    @property
    def name(self) -> str: ...

    def queries(self, texts: Sequence[str]) -> "Encoded": ...

    def passages(self, passages: Sequence[Passage]) -> "Encoded": ...


@dataclass(frozen=True)
class ByEncoder:
    """See the module."""

    encoder: Encoder

    @property
    def name(self) -> str:
        return f"encoder:{self.encoder.name}"

    def rerank(self, asked: Sequence[Candidates]) -> list[Reranked]:
        """As the protocol says; equal ones keep their order. Passages of all queries are computed
        together, and equal ones once.

        Raises:
            ReaderError: the encoder failed.
        """
        # Half of a surrogate pair is no character to a tokenizer.
        texts = [storable(each.query) for each in asked if each.hits]
        if not texts:
            return [Reranked(()) for _ in asked]
        try:
            queries = iter(self.encoder.queries(texts).vectors)
            found = self.encoder.passages([hit.passage for each in asked for hit in each.hits])
        except RetrieverError as error:
            raise ReaderError(str(error)) from error
        vectors, over = iter(found.vectors), iter(found.over)
        results = []
        for each in asked:
            hits: tuple[Hit, ...] = ()
            if each.hits:
                own = np.array(list(islice(vectors, len(each.hits))))
                hits = _ranked(each.hits, own, next(queries))
            results.append(Reranked(hits, cut=sum(islice(over, len(each.hits)))))
        return results


def _ranked(hits: Sequence[Hit], vectors: "Vectors", query: "Vectors") -> tuple[Hit, ...]:
    # Each vector once, as the rows of a product are not all rounded alike.
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
        MissingExtra: the package with MiniLM is not installed.
    """
    spec = naming.parse(model)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # see runtime.readers.hf
    from hopscope.runtime.encoders.encoder import load

    return ByEncoder(load(spec, device=device))
