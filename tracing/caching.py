"""Wrappers that ask a port once for what it has already said.

Sound because the ports are deterministic: a sampling request carries its seed. Two meters over
one `CachedReader` share their samples. Both wrappers forget the least recently used entries and
may be shared by threads.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from hopscope.runtime.ports import (
    Branch,
    BranchRequest,
    Entailment,
    Probabilities,
    Reader,
    Statement,
)
from hopscope.runtime.types import Generation, GenerationRequest, Pairs, Scored, ScoreRequest
from hopscope.tracing.pairs import Judged, judged, normalised

Asked = TypeVar("Asked", bound=Hashable)
Answered = TypeVar("Answered")


class _Memory(Generic[Asked, Answered]):
    """The last `size` answers."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._known: OrderedDict[Asked, Answered] = OrderedDict()
        self._lock = threading.Lock()

    def answer(
        self, asked: Sequence[Asked], ask: Callable[[list[Asked]], list[Answered]]
    ) -> list[Answered]:
        """One answer for each question; `ask` is called once, with the new ones, each once."""
        found: dict[Asked, Answered] = {}
        with self._lock:
            for question in asked:
                if question in self._known:
                    self._known.move_to_end(question)
                    found[question] = self._known[question]
        new = [question for question in dict.fromkeys(asked) if question not in found]
        if new:
            found.update(zip(new, ask(new), strict=True))
            with self._lock:
                for question in new:
                    self._known[question] = found[question]
                while len(self._known) > self._size:
                    self._known.popitem(last=False)
        return [found[question] for question in asked]


BRANCHES = 2_000
"""Answers about branches that are kept: each holds many."""


class CachedReader:
    """A reader that generates and scores the same request once. It can draw more samples and
    branch where the reader it wraps can; else these are None."""

    more: Callable[..., list[list[Generation]]] | None
    branch: Callable[[Sequence[BranchRequest]], list[list[Branch]]] | None

    def __init__(self, reader: Reader, *, size: int = 10_000) -> None:
        more, branch = getattr(reader, "more", None), getattr(reader, "branch", None)
        self.name = reader.name
        self._reader = reader
        self._generated: _Memory[GenerationRequest, list[Generation]] = _Memory(size)
        self._scored: _Memory[ScoreRequest, Scored] = _Memory(size)
        self.more = more and _remembering_more(more, size)
        self.branch = branch and _remembering_branches(branch, min(size, BRANCHES))

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        """Continuations of each request; see the port."""
        return self._generated.answer(requests, self._reader.generate)

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Likelihoods of given continuations; see the port."""
        return self._scored.answer(requests, self._reader.score)


def _remembering_more(
    more: Callable[..., list[list[Generation]]], size: int
) -> Callable[..., list[list[Generation]]]:
    memory: _Memory[tuple[GenerationRequest, int], list[Generation]] = _Memory(size)

    def remembering(requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        return memory.answer(
            [(request, first) for request in requests],
            lambda new: more([request for request, _ in new], first=first),
        )

    return remembering


def _remembering_branches(
    branch: Callable[[Sequence[BranchRequest]], list[list[Branch]]], size: int
) -> Callable[[Sequence[BranchRequest]], list[list[Branch]]]:
    memory: _Memory[BranchRequest, list[Branch]] = _Memory(size)
    return lambda requests: memory.answer(requests, branch)


class CachedEntailment:
    """An entailment model that is asked about the same pair once, as `tracing.pairs` has it."""

    def __init__(self, entailment: Entailment, *, size: int = 100_000) -> None:
        self.name = entailment.name
        self._entailment = entailment
        self._known: _Memory[Statement, Probabilities] = _Memory(size)

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement; see the port."""
        return self.judged(statements).probabilities

    def judged(self, statements: Sequence[Statement]) -> Judged:
        """The same with the count of this call."""
        below = Pairs()

        def ask(new: list[Statement]) -> list[Probabilities]:
            nonlocal below
            found, below = judged(self._entailment, new)
            return found

        found = self._known.answer([normalised(s) for s in statements], ask)
        return Judged(found, below.model_copy(update={"asked": len(statements)}))
