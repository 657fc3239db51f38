"""The stages between a retriever and the reader: fusions, rerankers and compressors.

Like the ports they are batched and need no inheritance. A stage keeps the keys of its passages, so
that evidence can be traced to its retrieval, however short it has become.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from hopscope.runtime.ports import Prompts, Reader, Retriever
from hopscope.runtime.types import Hit, Passage, Record


class ReaderContext(Protocol):
    """An object with a reader, its prompts and a seed: the `Deps` of a workflow, or a stage."""

    @property
    def reader(self) -> Reader: ...

    @property
    def prompts(self) -> Prompts: ...

    @property
    def seed(self) -> int: ...


class Candidates(NamedTuple):
    """The hits of one query, best first."""

    query: str
    hits: tuple[Hit, ...]

    @property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(hit.passage for hit in self.hits)


class Fusion(Protocol):
    """Makes one ranking of several."""

    @property
    def name(self) -> str:
        """Kind and settings."""
        ...

    def fuse(self, rankings: Sequence[Sequence[Hit]], weights: Sequence[float]) -> list[Hit]:
        """All passages of the rankings, each once, best first; ties keep their order.

        Passages with equal keys are the same passage.
        """
        ...


class Reranking(NamedTuple):
    """All candidates in a new order."""

    hits: tuple[Hit, ...]
    """Best first, with the reranker's own scores."""
    ok: bool | None = None
    """Whether the reader's reply could be parsed; None where no form was required."""
    cut: int = 0
    """Candidates longer than the model's input, of which it read the beginning only."""


class Reranker(Protocol):
    """Puts candidates into a better order."""

    @property
    def name(self) -> str:
        """Kind and settings."""
        ...

    def rerank(self, asked: Sequence[Candidates]) -> list[Reranking]:
        """The candidates of each query, all of them, best first.

        Raises:
            ReaderError: a model failed.
        """
        ...


class Compression(NamedTuple):
    """The candidates in fewer tokens."""

    hits: tuple[Hit, ...]
    tokens_before: int
    """Tokens of the candidates by the reader's count."""
    tokens_after: int


class Compressor(Protocol):
    """Makes candidates shorter."""

    @property
    def name(self) -> str:
        """Kind and settings."""
        ...

    def compress(self, asked: Sequence[Candidates]) -> list[Compression]:
        """The shortened candidates of each query.

        Raises:
            ReaderError: the model failed, or does not return likelihoods that are needed.
        """
        ...


class StageNote(Record):
    """The record of one stage's work on the candidates of one query."""

    stage: str
    """Its operator, as in the expression that names the retriever."""
    query: str
    before: tuple[str, ...]
    """Keys of the candidates."""
    after: tuple[str, ...]
    """Keys of the resulting passages."""
    parse_ok: bool | None = None
    cut: int | None = None
    """Candidates of which the model read the beginning only."""
    tokens_before: int | None = None
    tokens_after: int | None = None


@runtime_checkable
class RecordableRetriever(Protocol):
    """A retriever with stages whose calls and notes can be recorded."""

    def recorded(
        self,
        recording: Callable[[Reader], Reader],
        note: Callable[[StageNote], None],
        *,
        capture: bool,
        prompts: Prompts,
    ) -> Retriever:
        """The same retriever, with each of its readers wrapped by `recording`, and `note` called
        with the record of each stage.

        Args:
            capture: whether the spans of its stages carry texts.
            prompts: of the stages that ask a reader.
        """
        ...


@runtime_checkable
class TruncatingRetriever(Protocol):
    """A retriever whose model reads only the beginning of a long query."""

    @property
    def queries_cut(self) -> int:
        """Queries so far whose end was cut off."""
        ...
