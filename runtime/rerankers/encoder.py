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
from typing import TYPE_CHECKING, Literal, Protocol

from hopscope.runtime.encoders import naming
from hopscope.runtime.errors import ReaderError, RetrieverError
from hopscope.runtime.stages import Candidates, Reranked, Reranker
from hopscope.runtime.text import storable
from hopscope.runtime.types import Passage

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from hopscope.runtime.encoders.encoder import Encoded

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
        """As the protocol says; equal ones keep their order.

        Raises:
            ReaderError: the encoder failed.
        """
        # Half of a surrogate pair is no character to a tokenizer.
        texts = [storable(each.query) for each in asked if each.hits]
        try:
            queries = iter(self.encoder.queries(texts).vectors if texts else ())
            return [
                self._rank(each, next(queries)) if each.hits else Reranked(()) for each in asked
            ]
        except RetrieverError as error:
            raise ReaderError(str(error)) from error

    def _rank(self, candidates: Candidates, query: "NDArray[float32]") -> Reranked:
        encoded = self.encoder.passages(candidates.passages)
        scores = (encoded.vectors @ query).tolist()
        hits = (
            hit.model_copy(update={"score": score})
            for hit, score in zip(candidates.hits, scores, strict=True)
        )
        return Reranked(tuple(sorted(hits, key=lambda hit: -hit.score)), cut=encoded.cut)


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
