"""The run's ports, shared by all nodes of a foreign graph."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Generation, GenerationRequest, Hit, Scored, ScoreRequest

Asking = Callable[[], AbstractContextManager[Deps]]
"""Returns the recording ports of the calling node."""


def routed(deps: Deps, asking: Asking) -> Deps:
    """Ports that all nodes may share."""
    reader = _Reader(deps.reader.name, asking)
    return replace(deps, reader=reader, retriever=_Retriever(deps.retriever.name, asking))


@dataclass(frozen=True)
class _Reader:
    name: str
    asking: Asking

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        with self.asking() as deps:
            return deps.reader.generate(requests)

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        with self.asking() as deps:
            return deps.reader.score(requests)


@dataclass(frozen=True)
class _Retriever:
    name: str
    asking: Asking

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        with self.asking() as deps:
            return deps.retriever.search(queries, k=k)
