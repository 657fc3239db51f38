"""What asking models costs, counted where the asking happens."""

import threading
from collections.abc import Callable, Iterable, Sequence

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
    Pairs,
    Scored,
    ScoreRequest,
    Usage,
)
from hopscope.tracing.pairs import Judged, judged


class MeteredReader:
    """A reader that counts. Behind a cache it counts what is really asked. It can draw more
    samples and branch where the reader it wraps can; else these are None. Threads may share it."""

    more: Callable[..., list[list[Generation]]] | None
    branch: Callable[[Sequence[BranchRequest]], list[list[Branch]]] | None

    def __init__(self, reader: Reader) -> None:
        self.name = reader.name
        self._reader = reader
        self._spent = Usage()
        self._lock = threading.Lock()
        self.more = self._more if callable(getattr(reader, "more", None)) else None
        self.branch = self._branch if callable(getattr(reader, "branch", None)) else None

    @property
    def spent(self) -> Usage:
        """Everything since the last `take`. Of branching, which tells no usage, each distribution
        of the next token counts as a call with one token out."""
        return self._spent

    def take(self) -> Usage:
        """What was spent since the last time this was asked."""
        with self._lock:
            spent, self._spent = self._spent, Usage()
        return spent

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        """Continuations of each request; see the port."""
        return self._counted(self._reader.generate(requests))

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Likelihoods of given continuations; see the port."""
        scored = self._reader.score(requests)
        self._count(found.usage for found in scored)
        return scored

    def _more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        replies: list[list[Generation]] = self._reader.more(requests, first=first)  # type: ignore[attr-defined]
        return self._counted(replies)

    def _branch(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
        found: list[list[Branch]] = self._reader.branch(requests)  # type: ignore[attr-defined]
        self._count([Usage(output_tokens=len(requests), calls=len(requests))])
        return found

    def _counted(self, replies: list[list[Generation]]) -> list[list[Generation]]:
        self._count(generation.usage for reply in replies for generation in reply)
        return replies

    def _count(self, usages: Iterable[Usage]) -> None:
        total = sum(usages, Usage())
        with self._lock:
            self._spent += total


class MeteredEntailment:
    """An entailment model that counts pairs. Before a cache it tells how many that spared. Threads
    may share it."""

    def __init__(self, entailment: Entailment) -> None:
        self.name = entailment.name
        self._entailment = entailment
        self._spent = Pairs()
        self._lock = threading.Lock()

    def take(self) -> Pairs:
        """What was asked since the last time this was."""
        with self._lock:
            spent, self._spent = self._spent, Pairs()
        return spent

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement; see the port."""
        return self.judged(statements).probabilities

    def judged(self, statements: Sequence[Statement]) -> Judged:
        """The same with the count of this call."""
        found = judged(self._entailment, statements)
        with self._lock:
            self._spent += found.pairs
        return found
