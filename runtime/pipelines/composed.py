"""Evaluates an expression: a retriever made of other retrievers.

Numbers of passages: the caller gives k, and the numbers of the expression take precedence.

    @n        asks for n at most
    a&b       parts with a number of their own give that many; the others share the rest of k evenly
    @RR       asks for 20 candidates, for k if k is more, or for the number its operand gives itself
    rrf(a,b)  asks each for 100, for k if k is more, or for the number it gives itself
    @CP       compresses the passages of its operand for k

A result never has more than k. Invariants: all calls of a stage to a reader go through the
`recording` given to `recorded`, so that the step's record has them; a query without hits makes no
call to a model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hopscope.runtime import spans
from hopscope.runtime.pipelines.expression import (
    Compress,
    Expression,
    Fuse,
    Join,
    Keep,
    NoRetrieval,
    Part,
    Rerank,
    Source,
    size,
)
from hopscope.runtime.ports import Prompts, Reader, Retriever
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.spans import keys as keys
from hopscope.runtime.stages import (
    Candidates,
    Compression,
    Compressor,
    Fusion,
    Reranker,
    Reranking,
    StageNote,
    TruncatingRetriever,
)
from hopscope.runtime.types import Hit

CANDIDATES = 20
"""Default number of hits to rerank."""
FUSED = 100
"""Default number of hits of each ranking to fuse."""

Rankings = list[list[Hit]]
Staged = Fuse | Rerank | Compress
"""An operation that a component carries out."""


class Stage(NamedTuple):
    """A component and its reader; made anew for each way of recording and each set of prompts."""

    make: Callable[[Reader, Prompts], Any]
    reader: Reader
    name: str


class Work(NamedTuple):
    """The work of a stage."""

    operation: str
    """Its name in spans."""
    wanted: Rerank | Compress
    do: Callable[[Sequence[Candidates]], Sequence[Any]]
    tell: Callable[[Any], dict[str, Any]]
    """The fields of a result that go into its note."""


@dataclass(frozen=True)
class Composed:
    """Evaluates an expression. It is safe to share between threads if its sources are."""

    name: str
    """The expression in canonical form; in brackets the names of its sources and stages."""
    expression: Expression
    sources: Mapping[str, Retriever]
    stages: Mapping[Staged, Stage]
    recording: Callable[[Reader], Reader] = lambda reader: reader
    note: Callable[[StageNote], None] = lambda note: None
    capture: bool = False
    prompts: Prompts = DEFAULT_PROMPTS
    """Of the stages that ask a reader."""

    def recorded(
        self,
        recording: Callable[[Reader], Reader],
        note: Callable[[StageNote], None],
        *,
        capture: bool,
        prompts: Prompts,
    ) -> Retriever:
        """See `RecordableRetriever`."""
        return replace(self, recording=recording, note=note, capture=capture, prompts=prompts)

    @property
    def queries_cut(self) -> int:
        """The sum over all sources; see `TruncatingRetriever`."""
        cutting = (
            source for source in self.sources.values() if isinstance(source, TruncatingRetriever)
        )
        return sum(source.queries_cut for source in cutting)

    def search(self, queries: Sequence[str], *, k: int) -> Rankings:
        """See the port.

        Raises:
            RetrieverError: a source failed.
            ReaderError: a model of a stage failed.
        """
        return [ranking[:k] for ranking in self._find(self.expression, queries, k)]

    def _find(self, expression: Expression, queries: Sequence[str], k: int) -> Rankings:
        match expression:
            case NoRetrieval():
                return [[] for _ in queries]
            case Source(name):
                return self.sources[name].search(queries, k=k)
            case Keep(inner, n):
                return [ranking[:n] for ranking in self._find(inner, queries, min(k, n))]
            case Join(parts):
                shares = _shares(parts, k)
                results = [
                    self._find(part if n else NoRetrieval(), queries, n)
                    for part, n in zip(parts, shares, strict=True)
                ]
                return [_distinct(rankings) for rankings in zip(*results, strict=True)]
            case Fuse(_, parts):
                return self._fuse(expression, parts, queries, k)
            case Rerank(inner):
                return self._rerank(expression, self._candidates(inner, queries, CANDIDATES, k), k)
            case Compress(inner):
                return self._compress(expression, self._candidates(inner, queries, 0, k), k)

    def _fuse(
        self, expression: Fuse, parts: Sequence[Part], queries: Sequence[str], k: int
    ) -> Rankings:
        fusion: Fusion = self._made(expression)
        weights = [part.weight for part in parts]
        results = [self._find(part.inner, queries, _depth(part.inner, FUSED, k)) for part in parts]
        return [fusion.fuse(rankings, weights)[:k] for rankings in zip(*results, strict=True)]

    def _candidates(
        self, inner: Expression, queries: Sequence[str], least: int, k: int
    ) -> list[Candidates]:
        rankings = self._find(inner, queries, _depth(inner, least, k))
        return [
            Candidates(query, tuple(hits)) for query, hits in zip(queries, rankings, strict=True)
        ]

    def _rerank(self, expression: Rerank, batch: Sequence[Candidates], k: int) -> Rankings:
        reranker: Reranker = self._made(expression)

        def tell(done: Reranking) -> dict[str, Any]:
            return {"parse_ok": done.ok, "cut": done.cut or None}

        return self._noted(Work(keys.RERANK, expression, reranker.rerank, tell), batch, k)

    def _compress(self, expression: Compress, batch: Sequence[Candidates], k: int) -> Rankings:
        compressor: Compressor = self._made(expression)

        def tell(done: Compression) -> dict[str, Any]:
            return {"tokens_before": done.tokens_before, "tokens_after": done.tokens_after}

        return self._noted(Work(keys.COMPRESS, expression, compressor.compress, tell), batch, k)

    def _noted(self, work: Work, batch: Sequence[Candidates], k: int) -> Rankings:
        """Do the work for queries with candidates, with a span and a note for each."""
        nonempty = [candidates for candidates in batch if candidates.hits]
        if not nonempty:
            return [[] for _ in batch]
        name, operator = self.stages[work.wanted].name, work.wanted.operator
        with spans.stages(
            work.operation, name, operator, nonempty, k=k, capture=self.capture
        ) as finish:
            done = work.do(nonempty)
            notes = [
                StageNote(
                    stage=operator,
                    query=candidates.query,
                    before=tuple(passage.key for passage in candidates.passages),
                    after=tuple(hit.passage.key for hit in result.hits),
                    **work.tell(result),
                )
                for candidates, result in zip(nonempty, done, strict=True)
            ]
            finish([result.hits for result in done], notes)
        for note in notes:
            self.note(note)
        results = iter(done)
        return [list(next(results).hits) if candidates.hits else [] for candidates in batch]

    def _made(self, expression: Staged) -> Any:
        stage = self.stages[expression]
        return stage.make(self.recording(stage.reader), self.prompts)


def _depth(inner: Expression, least: int, k: int) -> int:
    """The number of hits to ask of an operand."""
    own = size(inner)
    return max(least, k) if own is None else own


def _shares(parts: Sequence[Expression], k: int) -> list[int]:
    """The number of hits to ask of each part of a concatenation."""
    sizes = [size(part) for part in parts]
    left = max(0, k - sum(own for own in sizes if own is not None))
    open_parts = [at for at, own in enumerate(sizes) if own is None]
    return [
        own if own is not None else _even(left, len(open_parts), open_parts.index(at))
        for at, own in enumerate(sizes)
    ]


def _even(total: int, parts: int, at: int) -> int:
    """The share of one part; the first parts take the remainder."""
    return total // parts + (at < total % parts)


def _distinct(rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
    """The rankings one after the other, each passage once."""
    hits: dict[str, Hit] = {}
    for ranking in rankings:
        for hit in ranking:
            hits.setdefault(hit.passage.key, hit)
    return list(hits.values())
