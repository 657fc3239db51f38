"""A reader for many threads: what they ask for at about the same time is computed together.

Fair: a thread waits for one call at a time, the oldest call says what is computed next, and a batch
takes one request of each call in turn, so that a large call does not hold up small ones. Each
sample has a random stream of its own, so company changes a number by rounding alone.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from hopscope.runtime.errors import ReaderError
from hopscope.runtime.ports import Branch, BranchRequest, Reader
from hopscope.runtime.types import Generation, GenerationRequest, Scored, ScoreRequest

WINDOW_SECONDS = 0.02
"""How long a batch waits for more calls at most."""
BATCH = 256
"""Samples that are computed together; a batch ends with the request that reaches them."""
WAITING = 4096
"""Requests that may wait; who asks for more has to wait until there is room."""

Verb = tuple[str, tuple[tuple[str, int], ...]]
"""A method of the reader and its options: only requests for the same go into a batch."""


@dataclass(eq=False)
class _Call:
    """What one thread waits for."""

    verb: Verb
    requests: Sequence[Any]
    answers: dict[int, Any] = field(default_factory=dict)
    """By place among the requests."""
    error: Exception | None = None
    done: threading.Event = field(default_factory=threading.Event)
    begun: int = 0
    """How many of the requests are taken already."""

    @property
    def left(self) -> int:
        return len(self.requests) - self.begun


Taken = list[tuple[_Call, int]]
"""Calls and the places of the requests taken of them."""


class ScheduledReader:
    """Gathers what threads ask for. `deterministic`: each call is computed alone, whole and in the
    order of arrival, to the last digit as the reader alone would.

    with ScheduledReader(reader, callers=8) as shared: ...

    It can draw more samples and branch where the reader it wraps can; else these are None.
    """

    more: Callable[..., list[list[Generation]]] | None
    branch: Callable[[Sequence[BranchRequest]], list[list[Branch]]] | None

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
            callers: threads; once as many calls wait, none is waited for.
            deterministic: see the class.
            window_seconds, batch, waiting: in place of the constants above.
        """
        self.name = reader.name
        self._reader = reader
        self._callers = callers
        self._alone = deterministic
        self._window = window_seconds
        self._batch = batch
        self._room = waiting
        self._arriving: deque[_Call] = deque()
        """Those for which there was no room yet, in the order in which they came."""
        self._calls: deque[_Call] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self.more = self._more if callable(getattr(reader, "more", None)) else None
        self.branch = self._branch if callable(getattr(reader, "branch", None)) else None
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
        """Take no more calls, and end when those that wait are answered."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        """Continuations of each request; see the port."""
        return self._ask(("generate", ()), requests)

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Likelihoods of given continuations; see the port."""
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
                raise ReaderError(f"{self.name}: asked after it was closed")
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
        while taken := self._take():
            self._compute(taken)

    def _take(self) -> Taken:
        """The next batch; empty when it is closed and nothing is left."""
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
            taken = self._round()
            self._calls = deque(call for call in self._calls if call.left)
            self._changed.notify_all()
            return taken

    def _full(self) -> bool:
        if len(self._calls) >= self._callers:
            return True
        return sum(_samples(r) for call in self._calls for r in call.requests) >= self._batch

    def _round(self) -> Taken:
        """One request of each call like the oldest in turn, until the batch is full; or all of the
        oldest."""
        oldest = self._calls[0]
        alike = [oldest] if self._alone else [c for c in self._calls if c.verb == oldest.verb]
        taken: Taken = []
        samples = 0
        while alike and (self._alone or samples < self._batch):
            for call in alike:
                samples += _samples(call.requests[call.begun])
                taken.append((call, call.begun))
                call.begun += 1
            alike = [call for call in alike if call.left]
        return taken

    def _compute(self, taken: Taken) -> None:
        """Answer a batch. One that fails is tried again call by call, since it is the fault of one
        of them."""
        calls = list(dict.fromkeys(call for call, _ in taken))
        verb, options = calls[0].verb
        ask: Any = getattr(self._reader, verb)
        try:
            found = ask([call.requests[place] for call, place in taken], **dict(options))
            answered = list(zip(taken, found, strict=True))
        except Exception as error:
            if len(calls) > 1:
                for call in calls:
                    self._compute([(one, place) for one, place in taken if one is call])
                return
            self._fail(calls[0], error)
            return
        for (call, place), answer in answered:
            call.answers[place] = answer
        for call in calls:
            if len(call.answers) == len(call.requests):
                call.done.set()

    def _fail(self, call: _Call, error: Exception) -> None:
        """The call's thread gets the error; nothing more is computed for it."""
        with self._changed:
            call.error = error
            call.begun = len(call.requests)
            self._calls = deque(each for each in self._calls if each is not call)
            self._changed.notify_all()
        call.done.set()


def _samples(request: Any) -> int:
    return request.n if isinstance(request, GenerationRequest) else 1
