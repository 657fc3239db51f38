"""What asking a reader costs, counted where the asking happens."""

import threading
from collections.abc import Iterable, Sequence

from hopscope.runtime.ports import Reader
from hopscope.runtime.types import Generation, GenerationRequest, Scored, ScoreRequest, Usage


class MeteredReader:
    """A reader that counts. Behind a cache it counts what is really asked. Threads may share it."""

    def __init__(self, reader: Reader) -> None:
        self.name = reader.name
        self._reader = reader
        self._spent = Usage()
        self._lock = threading.Lock()

    @property
    def spent(self) -> Usage:
        """Everything so far."""
        return self._spent

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        """Continuations of each request; see the port."""
        replies = self._reader.generate(requests)
        self._count(generation.usage for reply in replies for generation in reply)
        return replies

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Likelihoods of given continuations; see the port."""
        scored = self._reader.score(requests)
        self._count(found.usage for found in scored)
        return scored

    def _count(self, usages: Iterable[Usage]) -> None:
        total = sum(usages, Usage())
        with self._lock:
            self._spent += total
