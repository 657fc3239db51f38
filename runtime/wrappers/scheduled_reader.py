"""A reader for many threads: requests that arrive at about the same time are computed together.

Scheduling is fair: a thread waits for one call at a time, the oldest call decides what is computed
next, and a batch takes one request of each call in turn, so that a large call does not delay small
ones. Each sample has its own random stream, so the batch changes a number by rounding only.
"""

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from hopscope.runtime.errors import ReaderError
from hopscope.runtime.ports import Branch, BranchRequest, Reader
from hopscope.runtime.types import Generation, GenerationRequest, Scored, ScoreRequest
from hopscope.runtime.wrappers.forwarding_reader import ForwardingReader

WINDOW_SECONDS = 0.02
"""Most seconds that a batch waits for more calls."""
BATCH = 256
"""Samples of a batch; the request that reaches them ends it."""
WAITING = 4096
"""Most waiting requests; a further call blocks until there is room."""

Verb = tuple[str, tuple[tuple[str, int], ...]]
"""A method of the reader and its options; all requests of a batch have the same."""


@dataclass(eq=False)
class _Call:
    """The call that one thread waits for."""

    verb: Verb
    requests: Sequence[Any]
    answers: dict[int, Any] = field(default_factory=dict)
    """By place among the requests."""
    error: Exception | None = None
    done: threading.Event = field(default_factory=threading.Event)
    begun: int = 0
    """Number of requests already in batches."""

    @property
    def left(self) -> int:
        return len(self.requests) - self.begun


Taken = list[tuple[_Call, int]]
"""Calls and the places of their requests in a batch."""


class ScheduledReader(ForwardingReader):
    """Batches the requests of threads. `deterministic`: each call is computed alone, whole and in
    the order of arrival, equal to the last digit to the wrapped reader's result.

    with ScheduledReader(reader, callers=8) as shared: ...
    """

    def __init__(
        self,
        reader: Reader,
        *,
        callers: int,
        deterministic: bool = False,
        window_seconds: float = WINDOW_SECONDS,
        batch: int = BATCH,
        waiting: int = WAITING,
    ) -> None:
        """
        Args:
            callers: number of threads; once so many calls wait, a batch starts at once.
            deterministic: see the class.
            window_seconds, batch, waiting: in place of the constants above.
        """
        super().__init__(reader)
        self._callers = callers
        self._alone = deterministic
        self._window = window_seconds
        self._batch = batch
        self._room = waiting
        self._arriving: deque[_Call] = deque()
        """Calls that wait for room, in the order of arrival."""
        self._calls: deque[_Call] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="reader", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Refuse further calls, and end when the waiting ones are answered."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        return self._ask(("generate", ()), requests)

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        return self._ask(("score", ()), requests)

    def _more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        return self._ask(("more", (("first", first),)), requests)

    def _branch(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
        return self._ask(("branch", ()), requests)

    def _ask(self, verb: Verb, requests: Sequence[Any]) -> list[Any]:
        call = _Call(verb, tuple(requests))
        if not requests:
            return []
        with self._changed:
            self._arriving.append(call)
            while not self._closed and not (self._arriving[0] is call and self._fits(call)):
                self._changed.wait()
            self._arriving.remove(call)
            if self._closed:
                raise ReaderError(f"{self.name} was called after it was closed")
            self._calls.append(call)
            self._changed.notify_all()
        call.done.wait()
        if call.error is not None:
            raise call.error
        return [call.answers[place] for place in range(len(call.requests))]

    def _fits(self, call: _Call) -> bool:
        waiting = sum(each.left for each in self._calls)
        return waiting == 0 or waiting + len(call.requests) <= self._room

    def _work(self) -> None:
        while batch := self._take():
            self._compute(batch)

    def _take(self) -> Taken:
        """The next batch; empty when the reader is closed and nothing waits."""
        with self._changed:
            while not self._calls:
                if self._closed:
                    return []
                self._changed.wait()
            until = time.monotonic() + self._window
            while not self._alone and not self._closed and not self._full():
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            batch = self._round()
            self._calls = deque(call for call in self._calls if call.left)
            self._changed.notify_all()
            return batch

    def _full(self) -> bool:
        if len(self._calls) >= self._callers:
            return True
        return sum(_samples(r) for call in self._calls for r in call.requests) >= self._batch

    def _round(self) -> Taken:
        """One request in turn of each call with the oldest call's verb, until the batch is full; or
        all requests of the oldest call."""
        oldest = self._calls[0]
        alike = [oldest] if self._alone else [c for c in self._calls if c.verb == oldest.verb]
        batch: Taken = []
        samples = 0
        while alike and (self._alone or samples < self._batch):
            for call in alike:
                samples += _samples(call.requests[call.begun])
                batch.append((call, call.begun))
                call.begun += 1
            alike = [call for call in alike if call.left]
        return batch

    def _compute(self, batch: Taken) -> None:
        """Answer a batch. A failed batch is repeated call by call, since one call caused the
        failure."""
        calls = list(dict.fromkeys(call for call, _ in batch))
        verb, options = calls[0].verb
        ask: Any = getattr(self._reader, verb)
        try:
            answers = ask([call.requests[place] for call, place in batch], **dict(options))
            answered = list(zip(batch, answers, strict=True))
        except Exception as error:
            if len(calls) > 1:
                for call in calls:
                    self._compute([(one, place) for one, place in batch if one is call])
                return
            self._fail(calls[0], error)
            return
        for (call, place), answer in answered:
            call.answers[place] = answer
        for call in calls:
            if len(call.answers) == len(call.requests):
                call.done.set()

    def _fail(self, call: _Call, error: Exception) -> None:
        """Give the error to the call's thread, and compute nothing more for it."""
        with self._changed:
            call.error = error
            call.begun = len(call.requests)
            self._calls = deque(each for each in self._calls if each is not call)
            self._changed.notify_all()
        call.done.set()


def _samples(request: Any) -> int:
    return request.n if isinstance(request, GenerationRequest) else 1
