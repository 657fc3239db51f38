"""What may stand between a retriever and the reader: fusions, rerankers and compressors.

Like the ports they are batched and need no inheritance. A stage keeps the keys of the passages it
was given, so that evidence stays what was retrieved, however short it has become.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from hopscope.runtime.ports import Reader, Retriever
from hopscope.runtime.types import Hit, Passage, Record


class Asker(Protocol):
    """Has a reader to ask: the `Deps` of a workflow, or a stage."""

    @property
    def reader(self) -> Reader: ...

    @property
    def seed(self) -> int: ...


class Candidates(NamedTuple):
    """What was found for one query, best first."""

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
        """All passages of the rankings, each once, best first; equal ones as they came.

        A passage is the same in two rankings when its key is.
        """
        ...


class Reranked(NamedTuple):
    """All candidates in a new order."""

    hits: tuple[Hit, ...]
    """Best first, with the reranker's own scores."""
    ok: bool | None = None
    """Whether what the reader replied could be read; None where no form was asked of it."""
    cut: int = 0
    """Candidates that are longer than the model, of which it saw the beginning only."""


class Reranker(Protocol):
    """Puts candidates into a better order."""

    @property
    def name(self) -> str:
        """Kind and settings."""
        ...

    def rerank(self, asked: Sequence[Candidates]) -> list[Reranked]:
        """The candidates of each query, all of them, best first.

        Raises:
            ReaderError: a model failed.
        """
        ...


class Compressed(NamedTuple):
    """The candidates in fewer tokens."""

    hits: tuple[Hit, ...]
    tokens_before: int
    """Of the candidates, as the reader counts."""
    tokens_after: int


class Compressor(Protocol):
    """Makes candidates shorter."""

    @property
    def name(self) -> str:
        """Kind and settings."""
        ...

    def compress(self, asked: Sequence[Candidates]) -> list[Compressed]:
        """What is left of the candidates of each query.

        Raises:
            ReaderError: the model failed, or gives no likelihoods where they are needed.
        """
        ...


class Note(Record):
    """What a stage did to the candidates of one query."""

    stage: str
    """Its operator, as in the expression that names the retriever."""
    query: str
    before: tuple[str, ...]
    """Keys of the candidates."""
    after: tuple[str, ...]
    """Keys of what came of them."""
    parse_ok: bool | None = None
    cut: int | None = None
    """Candidates a model saw the beginning of only."""
    tokens_before: int | None = None
    tokens_after: int | None = None


@runtime_checkable
class Noting(Protocol):
    """A retriever that asks readers and has something to tell about it."""

    def recorded(
        self,
        recording: Callable[[Reader], Reader],
        note: Callable[[Note], None],
        *,
        capture: bool,
    ) -> Retriever:
        """The same retriever, with `recording` put before each reader that it asks, and `note`
        told what each stage did. `capture`: whether the spans of its stages carry texts."""
        ...


@runtime_checkable
class Cutting(Protocol):
    """A retriever whose model reads no more than the beginning of a long query."""

    @property
    def queries_cut(self) -> int:
        """Queries so far whose end was left out."""
        ...
