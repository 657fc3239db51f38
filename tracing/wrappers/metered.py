"""Wrappers that count the usage of models."""

import threading
from collections.abc import Iterable, Sequence

from hopscope.runtime.ports import (
    Branch,
    BranchRequest,
    Entailment,
    Probabilities,
    Reader,
    Statement,
)
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    PairCounts,
    Scored,
    ScoreRequest,
    Usage,
)
from hopscope.runtime.wrappers.forwarding_reader import ForwardingReader
from hopscope.tracing.pairs.forms import CountedRelations, classify_counted


class MeteredReader(ForwardingReader):
    """A reader that counts usage. Behind a cache it counts only real calls. Threads may share
    it."""

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader)
        self._spent = Usage()
        self._lock = threading.Lock()

    @property
    def spent(self) -> Usage:
        """The usage since the last `take`. Branching reports no usage: each next-token distribution
        counts as a call with one output token."""
        return self._spent

    def take(self) -> Usage:
        """The usage since the last call; resets the count."""
        with self._lock:
            spent, self._spent = self._spent, Usage()
        return spent

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        return self._counted(super().generate(requests))

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        scored = super().score(requests)
        self._count(each.usage for each in scored)
        return scored

    def _more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        return self._counted(super()._more(requests, first=first))

    def _branch(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
        branches = super()._branch(requests)
        self._count([Usage(output_tokens=len(requests), calls=len(requests))])
        return branches

    def _counted(self, replies: list[list[Generation]]) -> list[list[Generation]]:
        self._count(generation.usage for reply in replies for generation in reply)
        return replies

    def _count(self, usages: Iterable[Usage]) -> None:
        total = sum(usages, Usage())
        with self._lock:
            self._spent += total


class MeteredEntailment:
    """An entailment model that counts pairs. In front of a cache it also counts the pairs that the
    cache answered. Threads may share it."""

    def __init__(self, entailment: Entailment) -> None:
        self.name = entailment.name
        self._entailment = entailment
        self._spent = PairCounts()
        self._lock = threading.Lock()

    def take(self) -> PairCounts:
        """The pairs since the last call; resets the count."""
        with self._lock:
            spent, self._spent = self._spent, PairCounts()
        return spent

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement; see the port."""
        return self.classify_counted(statements).probabilities

    def classify_counted(self, statements: Sequence[Statement]) -> CountedRelations:
        """The same with the count of this call."""
        counted = classify_counted(self._entailment, statements)
        with self._lock:
            self._spent += counted.pairs
        return counted
