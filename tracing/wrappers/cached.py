"""Caches in front of ports: an equal request is answered from memory.

Valid because the ports are deterministic: a sampling request carries its seed. Two meters over
one `CachedReader` share their samples. Both wrappers drop the least recently used entries, and
threads may share them.
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
from hopscope.runtime.types import Generation, GenerationRequest, PairCounts, Scored, ScoreRequest
from hopscope.runtime.wrappers.forwarding_reader import ForwardingReader
from hopscope.tracing.pairs.forms import CountedRelations, classify_counted, normalised

Request = TypeVar("Request", bound=Hashable)
Response = TypeVar("Response")


class _Memory(Generic[Request, Response]):
    """The last `size` responses."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._known: OrderedDict[Request, Response] = OrderedDict()
        self._lock = threading.Lock()

    def answer(
        self, requests: Sequence[Request], ask: Callable[[list[Request]], list[Response]]
    ) -> list[Response]:
        """One response for each request; `ask` is called once with the distinct new requests."""
        responses: dict[Request, Response] = {}
        with self._lock:
            for request in requests:
                if request in self._known:
                    self._known.move_to_end(request)
                    responses[request] = self._known[request]
        new = [request for request in dict.fromkeys(requests) if request not in responses]
        if new:
            responses.update(zip(new, ask(new), strict=True))
            with self._lock:
                for request in new:
                    self._known[request] = responses[request]
                while len(self._known) > self._size:
                    self._known.popitem(last=False)
        return [responses[request] for request in requests]


RENDERED = 2_000
"""Rendered prompts kept in memory: one takes some 30 KB."""
BRANCHES = 2_000
"""Branch responses kept in memory: each holds many branches."""


class CachedReader(ForwardingReader):
    """A reader that answers the same request once."""

    def __init__(self, reader: Reader, *, size: int = 10_000) -> None:
        super().__init__(reader)
        self._generated: _Memory[GenerationRequest, list[Generation]] = _Memory(size)
        self._scored: _Memory[ScoreRequest, Scored] = _Memory(size)
        self._drawn: _Memory[tuple[GenerationRequest, int], list[Generation]] = _Memory(size)
        self._branches: _Memory[BranchRequest, list[Branch]] = _Memory(min(size, BRANCHES))
        self._rendered: _Memory[GenerationRequest, tuple[int, ...]] = _Memory(min(size, RENDERED))
        if (render := self.prompt_ids) is not None:
            self.prompt_ids = lambda request: self._rendered.answer(
                [request], lambda new: [render(each) for each in new]
            )[0]

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        return self._generated.answer(requests, super().generate)

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        return self._scored.answer(requests, super().score)

    def _more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        draw = super()._more
        return self._drawn.answer(
            [(request, first) for request in requests],
            lambda new: draw([request for request, _ in new], first=first),
        )

    def _branch(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
        return self._branches.answer(requests, super()._branch)


class CachedEntailment:
    """An entailment model that classifies a pair once; `tracing.pairs` says which are equal."""

    def __init__(self, entailment: Entailment, *, size: int = 100_000) -> None:
        self.name = entailment.name
        self._entailment = entailment
        self._known: _Memory[Statement, Probabilities] = _Memory(size)

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement; see the port."""
        return self.classify_counted(statements).probabilities

    def classify_counted(self, statements: Sequence[Statement]) -> CountedRelations:
        """The same with the count of this call."""
        below = PairCounts()

        def ask(new: list[Statement]) -> list[Probabilities]:
            nonlocal below
            computed, below = classify_counted(self._entailment, new)
            return computed

        relations = self._known.answer([normalised(s) for s in statements], ask)
        return CountedRelations(relations, below.model_copy(update={"asked": len(statements)}))
