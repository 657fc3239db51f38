"""Calls whose replies are written at the same time; each may join and end when it will."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import count
from typing import NamedTuple

from hopscope.runtime.distinct import each_once
from hopscope.runtime.generation.draft import Draft
from hopscope.runtime.generation.rows import Row
from hopscope.runtime.generation.running import RunningRows
from hopscope.runtime.types import Generation, GenerationRequest

Drafted = Callable[[Sequence[GenerationRequest], int], tuple[list[list[Draft]], list[Row]]]
"""Makes the samples of requests, from a number on, and the rows that complete them."""


class _Call(NamedTuple):
    requests: tuple[GenerationRequest, ...]
    drafts: dict[GenerationRequest, list[Draft]]
    """Equal requests are written once."""

    @property
    def complete(self) -> bool:
        return all(d.finished is not None for samples in self.drafts.values() for d in samples)


class Ongoing:
    """The calls of one reader; see the port `OngoingGeneration`."""

    def __init__(
        self,
        running: RunningRows,
        drafted: Drafted,
        computing: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """`computing` is entered for each use of the model or its tokenizer."""
        self._running = running
        self._drafted = drafted
        self._computing = computing
        self._calls: dict[int, _Call] = {}
        self._numbers = count()

    @property
    def busy(self) -> int:
        """Number of calls that are not answered yet."""
        return len(self._calls)

    def join(self, requests: Sequence[GenerationRequest], *, first: int = 0) -> int:
        """Add a call; see the port."""
        distinct = list(dict.fromkeys(requests))
        with self._computing():
            drafts, rows = self._drafted(distinct, first)
        number = next(self._numbers)
        self._calls[number] = _Call(tuple(requests), dict(zip(distinct, drafts, strict=True)))
        self._running.add(rows)
        return number

    def advance(self) -> dict[int, list[list[Generation]]]:
        """One pass, or a few if prompts are read; see the port."""
        with self._computing():
            self._running.step()
        complete = [number for number, call in self._calls.items() if call.complete]
        return {number: _replies(self._calls.pop(number)) for number in complete}


def _replies(call: _Call) -> list[list[Generation]]:
    def of(distinct: list[GenerationRequest]) -> list[list[Generation]]:
        return [[draft.generation() for draft in call.drafts[one]] for one in distinct]

    return each_once(call.requests, of)
