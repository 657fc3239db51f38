"""Works an expression through: a retriever that is made of others.

How many passages go where: who asks says k, and the numbers of the expression come before it.

    @n        asks for n at most
    a&b       parts with a number of their own give that many; the others share the rest of k evenly
    @RR       asks for 20 candidates, k if that is more, or as many as its operand gives by itself
    rrf(a,b)  asks each for 100, k if that is more, or as many as it gives by itself
    @CP       compresses what its operand gives for k

A result never has more than k. Invariants: whatever a stage asks of a reader goes through what
`recorded` was given, so that it stands in the step's record; a query that finds nothing asks no
model anything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hopscope.runtime import _span_keys as keys
from hopscope.runtime import spans
from hopscope.runtime.expression import (
    Compress,
    Expression,
    Fuse,
    Join,
    Keep,
    Nothing,
    Part,
    Rerank,
    Source,
    size,
)
from hopscope.runtime.ports import Reader, Retriever
from hopscope.runtime.stages import (
    Candidates,
    Compressed,
    Compressor,
    Cutting,
    Fusion,
    Note,
    Reranked,
    Reranker,
)
from hopscope.runtime.types import Hit

CANDIDATES = 20
"""That are reranked, where nothing says how many."""
FUSED = 100
"""Of each ranking that is fused, likewise."""

Rankings = list[list[Hit]]
Staged = Fuse | Rerank | Compress
"""What a component does."""


class Stage(NamedTuple):
    """A component that asks a reader, or none; made anew for each way of recording."""

    make: Callable[[Reader], Any]
    reader: Reader
    name: str


class Work(NamedTuple):
    """What a stage does."""

    operation: str
    """As its spans call it."""
    wanted: Rerank | Compress
    do: Callable[[Sequence[Candidates]], Sequence[Any]]
    tell: Callable[[Any], dict[str, Any]]
    """What of a result goes into its note."""


@dataclass(frozen=True)
class Composed:
    """Works an expression through. Searching is safe from several threads if its sources are."""

    name: str
    """The expression in canonical form; between brackets the sources and stages it stands for."""
    expression: Expression
    sources: Mapping[str, Retriever]
    stages: Mapping[Staged, Stage]
    recording: Callable[[Reader], Reader] = lambda reader: reader
    note: Callable[[Note], None] = lambda note: None
    capture: bool = False

    def recorded(
        self,
        recording: Callable[[Reader], Reader],
        note: Callable[[Note], None],
        *,
        capture: bool,
    ) -> Retriever:
        """See `Noting`."""
        return replace(self, recording=recording, note=note, capture=capture)

    @property
    def queries_cut(self) -> int:
        """See `Cutting`; of all sources together."""
        cutting = (source for source in self.sources.values() if isinstance(source, Cutting))
        return sum(source.queries_cut for source in cutting)

    def search(self, queries: Sequence[str], *, k: int) -> Rankings:
        """As the port says.

        Raises:
            RetrieverError: a source failed.
            ReaderError: a model of a stage failed.
        """
        return [ranking[:k] for ranking in self._find(self.expression, queries, k)]

    def _find(self, wanted: Expression, queries: Sequence[str], k: int) -> Rankings:
        match wanted:
            case Nothing():
                return [[] for _ in queries]
            case Source(name):
                return self.sources[name].search(queries, k=k)
            case Keep(inner, n):
                return [ranking[:n] for ranking in self._find(inner, queries, min(k, n))]
            case Join(parts):
                shares = _shares(parts, k)
                found = [
                    self._find(part if n else Nothing(), queries, n)
                    for part, n in zip(parts, shares, strict=True)
                ]
                return [_distinct(rankings) for rankings in zip(*found, strict=True)]
            case Fuse(_, parts):
                return self._fuse(wanted, parts, queries, k)
            case Rerank(inner):
                return self._rerank(wanted, self._candidates(inner, queries, CANDIDATES, k), k)
            case Compress(inner):
                return self._compress(wanted, self._candidates(inner, queries, 0, k), k)

    def _fuse(
        self, wanted: Fuse, parts: Sequence[Part], queries: Sequence[str], k: int
    ) -> Rankings:
        fusion: Fusion = self._made(wanted)
        weights = [part.weight for part in parts]
        found = [self._find(part.inner, queries, _depth(part.inner, FUSED, k)) for part in parts]
        return [fusion.fuse(rankings, weights)[:k] for rankings in zip(*found, strict=True)]

    def _candidates(
        self, inner: Expression, queries: Sequence[str], least: int, k: int
    ) -> list[Candidates]:
        found = self._find(inner, queries, _depth(inner, least, k))
        return [Candidates(query, tuple(hits)) for query, hits in zip(queries, found, strict=True)]

    def _rerank(self, wanted: Rerank, given: Sequence[Candidates], k: int) -> Rankings:
        reranker: Reranker = self._made(wanted)

        def tell(done: Reranked) -> dict[str, Any]:
            return {"parse_ok": done.ok, "cut": done.cut or None}

        return self._noted(Work(keys.RERANK, wanted, reranker.rerank, tell), given, k)

    def _compress(self, wanted: Compress, given: Sequence[Candidates], k: int) -> Rankings:
        compressor: Compressor = self._made(wanted)

        def tell(done: Compressed) -> dict[str, Any]:
            return {"tokens_before": done.tokens_before, "tokens_after": done.tokens_after}

        return self._noted(Work(keys.COMPRESS, wanted, compressor.compress, tell), given, k)

    def _noted(self, work: Work, given: Sequence[Candidates], k: int) -> Rankings:
        """The work done for those that have candidates, with a span and a note for each."""
        asked = [candidates for candidates in given if candidates.hits]
        if not asked:
            return [[] for _ in given]
        name, operator = self.stages[work.wanted].name, work.wanted.operator
        with spans.stages(
            work.operation, name, operator, asked, k=k, capture=self.capture
        ) as finish:
            done = work.do(asked)
            notes = [
                Note(
                    stage=operator,
                    query=candidates.query,
                    before=tuple(passage.key for passage in candidates.passages),
                    after=tuple(hit.passage.key for hit in result.hits),
                    **work.tell(result),
                )
                for candidates, result in zip(asked, done, strict=True)
            ]
            finish([result.hits for result in done], notes)
        for note in notes:
            self.note(note)
        results = iter(done)
        return [list(next(results).hits) if candidates.hits else [] for candidates in given]

    def _made(self, wanted: Staged) -> Any:
        stage = self.stages[wanted]
        return stage.make(self.recording(stage.reader))


def _depth(inner: Expression, least: int, k: int) -> int:
    """How many to ask of an operand."""
    own = size(inner)
    return max(least, k) if own is None else own


def _shares(parts: Sequence[Expression], k: int) -> list[int]:
    """How many to ask of each part of a concatenation."""
    sizes = [size(part) for part in parts]
    left = max(0, k - sum(own for own in sizes if own is not None))
    open_parts = [at for at, own in enumerate(sizes) if own is None]
    return [
        own if own is not None else _even(left, len(open_parts), open_parts.index(at))
        for at, own in enumerate(sizes)
    ]


def _even(total: int, parts: int, at: int) -> int:
    """The share of one of the parts; the first ones take what is left over."""
    return total // parts + (at < total % parts)


def _distinct(rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
    """One after the other, each passage once."""
    found: dict[str, Hit] = {}
    for ranking in rankings:
        for hit in ranking:
            found.setdefault(hit.passage.key, hit)
    return list(found.values())
