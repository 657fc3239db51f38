"""The state that EoR's nodes share: progress through the pool, and the next node.

Invariant: the state alone determines the next node, so an interrupted run can resume.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypedDict

from langgraph.graph import StateGraph

from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution import state as shared
from hopscope.runtime.execution.state import Deps, declined
from hopscope.runtime.judgments.order import by_place
from hopscope.runtime.judgments.ranking import rank, windows
from hopscope.runtime.pipelines import composition
from hopscope.runtime.pipelines.expression import Expression, Fuse, Keep, Rerank, Source
from hopscope.runtime.pipelines.expression import sources as names_in
from hopscope.runtime.specs import Spec
from hopscope.runtime.stages import Candidates, Fusion, Reranker
from hopscope.runtime.types import Hit, Passage
from hopscope.workflows.eor import _prompts
from hopscope.workflows.eor._pool import PoolRetriever, PoolUnit, parse_pool
from hopscope.workflows.eor.sources import Sources, configure, distinct, was_retrieved

WINDOW, STRIDE = 20, 10  # RankGPT's

NodeName = Literal["retrieve", "rerank", "compress", "generate", "vote"]
Lists = Mapping[str, tuple[Hit, ...]]


class EnsembleFields(TypedDict, total=False):
    lists: Lists
    """Rankings by name: one for each source searched, and one for each reranked list, as `NAME@RR`
    or `rrf(NAME,NAME)@RR`."""
    windows: int
    """Windows ranked so far in the current reranking."""
    ranking: tuple[Hit, ...]
    """The list of the current reranking, in its order so far."""
    summary: str | None
    """The summary of the current retriever's document, once it has compressed one."""
    answers: tuple[str, ...]
    """The answers of the retrievers so far, in the order of the pool."""


class Window(NamedTuple):
    """A list after the ranking of one window."""

    name: str
    ranking: tuple[Hit, ...]
    ok: bool | None
    """Whether the reply could be parsed; None without a request."""
    last: bool
    """Whether this was the list's last window."""


class EnsembleState(shared.State, EnsembleFields, total=False): ...


class EnsembleUpdate(shared.Update, EnsembleFields, total=False): ...


EnsembleGraph = StateGraph[EnsembleState, Deps, EnsembleState, EnsembleState]


@dataclass(frozen=True)
class EnsemblePlan:
    """The pool and the parts that its names stand for."""

    pool: tuple[PoolRetriever, ...]
    sources: Sources
    fusions: Mapping[Fuse, Fusion]
    rerankers: Mapping[Spec, Reranker]
    """Rerankers with a model of their own; without one the reader ranks."""

    def __post_init__(self) -> None:
        """
        Raises:
            UsageError: a name in the pool is no source.
        """
        self.sources.check(self.pool)

    @property
    def names(self) -> tuple[str, ...]:
        """The pool in canonical form."""
        return tuple(map(str, self.pool))

    def current(self, state: EnsembleState) -> PoolRetriever | None:
        """The retriever to answer next; None when all have answered."""
        turn = len(state.get("answers", ()))
        return self.pool[turn] if turn < len(self.pool) else None

    def next_step(self, state: EnsembleState) -> NodeName:
        """The next node that the current retriever needs, or `vote` when all have answered."""
        retriever = self.current(state)
        if retriever is None:
            return "vote"
        if declined(state):
            return "generate"  # this retriever and the rest answer from the passages so far
        if self.to_retrieve(state):
            return "retrieve"
        if self.to_rerank(state):
            return "rerank"
        compressed = state.get("summary") is not None or not self.document(state)
        return "compress" if retriever.compress and not compressed else "generate"

    def to_retrieve(self, state: EnsembleState) -> str | None:
        """The next source to search, or None."""
        units = (self.current(state) or PoolRetriever()).units
        named = (name for unit in units for name in unit.sources)
        parts = (part for name in named for part in self.sources.parts(name))
        return next((part for part in parts if part not in state.get("lists", {})), None)

    def to_rerank(self, state: EnsembleState) -> PoolUnit | None:
        """The next unit to rerank, or None."""
        units = (self.current(state) or PoolRetriever()).units
        lists = state.get("lists", {})
        return next((unit for unit in units if unit.rerank and unit.listed not in lists), None)

    def listed(self, wanted: Expression, lists: Lists) -> tuple[Hit, ...]:
        """The ranking before reranking: a source's own; for the hybrid, its sources' rankings one
        after the other; for a fusion, the fused ranking."""
        match wanted:
            case Keep(inner, k):
                return self.listed(inner, lists)[:k]
            case Fuse(_, parts):
                rankings = [self.listed(part.inner, lists) for part in parts]
                return tuple(self.fusions[wanted].fuse(rankings, [part.weight for part in parts]))
        named = (part for name in names_in(wanted) for part in self.sources.parts(name))
        return distinct(lists.get(part, ()) for part in named)

    def document(self, state: EnsembleState, lists: Lists | None = None) -> tuple[Passage, ...]:
        """The current retriever's passages for the reader. A unit that is not reranked yet
        contributes all its candidates."""
        lists = state.get("lists", {}) if lists is None else lists
        hits = distinct(
            self.listed(unit.of, lists)
            if unit.rerank and unit.listed not in lists
            else (lists[unit.listed] if unit.rerank else self.listed(unit.of, lists))[: unit.k]
            for unit in (self.current(state) or PoolRetriever()).units
        )
        return tuple(hit.passage for hit in hits)

    def read(self, state: EnsembleState) -> tuple[Passage, ...]:
        """The reader's evidence: the document, or its summary, which may be empty."""
        summary = state.get("summary")
        return self.document(state) if summary is None else _prompts.as_document(summary)

    def rank_window(self, state: EnsembleState, deps: Deps) -> Window:
        """Rank the next window of the current list by one reply of the reader. A reranker with a
        model of its own ranks the whole list at once."""
        unit, t = self.to_rerank(state) or PoolUnit(Source("")), state.get("windows", 0)
        ranking = state["ranking"] if t else self.listed(unit.of, state["lists"])
        if unit.by:
            given = Candidates(state["question"].text, ranking)
            [found] = self.rerankers[unit.by].rerank([given])
            return Window(unit.listed, found.hits, found.ok, last=True)
        stretches = windows(len(ranking), WINDOW, STRIDE)
        here = stretches[t]
        passages = tuple(hit.passage for hit in ranking)
        ranked, ok = rank(deps, state["question"].text, passages[here], "relevance")
        order = (*passages[: here.start], *ranked, *passages[here.stop :])
        return Window(unit.listed, by_place(order), ok, last=t + 1 == len(stretches))

    def evidence(self, state: EnsembleState, lists: Lists | None = None) -> tuple[Passage, ...]:
        """The retrieved part of the document: the reader's own knowledge is no evidence."""
        return tuple(filter(was_retrieved, self.document(state, lists)))

    def found_by(self, turn: int, state: EnsembleState) -> tuple[Passage, ...]:
        """The evidence of the retriever at this place of the pool."""
        return self.evidence({**state, "answers": ("",) * turn})


def make_plan(pool: str, sources: str, depth: int) -> EnsemblePlan:
    """The plan of the options. Each source returns `depth` passages, or more if a retriever keeps
    more.

    Raises:
        UsageError: an option cannot be used.
    """
    if depth < 1:
        raise UsageError(f"depth={depth}: take one passage or more from each source")
    retrievers = parse_pool(pool)
    units = [unit for retriever in retrievers for unit in retriever.units]
    fused = {unit.of: composition.fusion(unit.of) for unit in units if isinstance(unit.of, Fuse)}
    deepest = max([depth, *(unit.deepest for unit in units)])
    choices = {unit.by: Rerank(unit.of, unit.by) for unit in units if unit.by}
    rerankers = {by: composition.reranker(wanted) for by, wanted in choices.items()}
    return EnsemblePlan(retrievers, Sources(configure(sources), deepest), fused, rerankers)
