"""Wrappers that ask a port once for what it has already said.

Sound because the ports are deterministic: a sampling request carries its seed. Two meters over
one `CachedReader` share their samples. Both wrappers forget the least recently used entries and
may be shared by threads.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from hopscope.runtime.ports import Entailment, Probabilities, Reader, Statement
from hopscope.runtime.types import Generation, GenerationRequest, Scored, ScoreRequest

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


class CachedReader:
    """A reader that generates and scores the same request once."""

    def __init__(self, reader: Reader, *, size: int = 10_000) -> None:
        self.name = reader.name
        self._reader = reader
        self._generated: _Memory[GenerationRequest, list[Generation]] = _Memory(size)
        self._scored: _Memory[ScoreRequest, Scored] = _Memory(size)

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        """Continuations of each request; see the port."""
        return self._generated.answer(requests, self._reader.generate)

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Likelihoods of given continuations; see the port."""
        return self._scored.answer(requests, self._reader.score)


class CachedEntailment:
    """An entailment model that is asked about the same pair once."""

    def __init__(self, entailment: Entailment, *, size: int = 100_000) -> None:
        self.name = entailment.name
        self._entailment = entailment
        self._known: _Memory[Statement, Probabilities] = _Memory(size)

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement; see the port."""
        return self._known.answer(statements, self._entailment.classify)
