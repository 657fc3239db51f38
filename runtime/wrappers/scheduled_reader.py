"""A reader for many threads: requests that arrive at about the same time are computed together.

A continuous reader takes calls for replies into what it computes already, between two passes, and
each call is answered when its own replies end. Other calls make batches: so do all calls to other
readers, and likelihoods and branches, whose batch waits until its calls have missed as many passes
as calls are being written, because these wait for it.

A pass or batch begins when all threads wait for an answer, since one that comes later needs passes
of its own. Nobody is waited for any more when no call has come for a while; after waiting in vain
the next passes do not wait, each time twice as many.

Scheduling is fair: a thread waits for one call at a time, the oldest call decides what is computed
next, and a batch takes one request of each call in turn, so that a large call does not delay small
ones. Each sample has its own random stream, so the batch changes a number by rounding only.

Whatever the reader raises is raised in the thread whose call caused it, `SystemExit` too: in the
thread that computes it would leave all calls without an answer.
"""

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from hopscope.runtime.errors import ReaderError
from hopscope.runtime.ports import Branch, BranchRequest, ContinuousReader, Reader
from hopscope.runtime.types import Generation, GenerationRequest, Scored, ScoreRequest
from hopscope.runtime.wrappers.forwarding_reader import ForwardingReader

WINDOW_SECONDS = 0.02
"""Seconds without a call after which nobody is waited for any more."""
BATCH = 256
"""Samples of a batch; the request that reaches them ends it."""
WAITING = 4096
"""Most waiting requests; a further call blocks until there is room."""

REPLIES = frozenset({"generate", "more"})
"""Methods whose calls a continuous reader takes."""

Verb = tuple[str, tuple[tuple[str, int], ...]]
"""A method of the reader and its options; all requests of a batch have the same."""


@dataclass(eq=False)
class _Call:
    """The call that one thread waits for."""

    verb: Verb
    requests: Sequence[Any]
    answers: dict[int, Any] = field(default_factory=dict)
    """By place among the requests."""
    error: BaseException | None = None
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
    the order of arrival, equal to the last digit to the wrapped reader's result. `continuous`:
    calls join others that are being computed, if the reader can do that.

    with ScheduledReader(reader, callers=8) as shared: ...
    """

    def __init__(
        self,
        reader: Reader,
        *,
        callers: int,
        deterministic: bool = False,
        continuous: bool = True,
        window_seconds: float = WINDOW_SECONDS,
        batch: int = BATCH,
        waiting: int = WAITING,
    ) -> None:
        """
        Args:
            callers: number of threads; those that are not waiting for an answer may be about to
                call, and are waited for as long as others come.
            deterministic, continuous: see the class.
            window_seconds, batch, waiting: in place of the constants above.
        """
        super().__init__(reader)
        self._away = callers
        """Threads that may be about to call."""
        self._alone = deterministic
        self._window = window_seconds
        self._batch = batch
        self._room = waiting
        self._arriving: deque[_Call] = deque()
        """Calls that wait for room, in the order of arrival."""
        self._calls: deque[_Call] = deque()
        self._joins = (
            reader
            if continuous and not deterministic and isinstance(reader, ContinuousReader)
            else None
        )
        self._ongoing = self._joins.ongoing() if self._joins else None
        self._joined: dict[int, _Call] = {}
        """Calls that are being written, by their number there."""
        self._missed = 0
        """Passes of these that waiting calls have missed."""
        self._resting, self._rest = 0, 1
        """Passes before the next one that waits for more calls; and how many they are after it, if
        it waits in vain."""
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
            try:
                while not self._closed and not (self._arriving[0] is call and self._fits(call)):
                    self._changed.wait()
            finally:  # also when Ctrl-C ends the waiting: others wait behind this call
                self._arriving.remove(call)
                self._changed.notify_all()
            if self._closed:
                raise ReaderError(f"{self.name} was called after it was closed")
            self._calls.append(call)
            self._away = max(0, self._away - 1)
        call.done.wait()
        if call.error is not None:
            raise call.error
        return [call.answers[place] for place in range(len(call.requests))]

    def _fits(self, call: _Call) -> bool:
        waiting = sum(each.left for each in self._calls)
        waiting += sum(len(each.requests) for each in self._joined.values())
        return waiting == 0 or waiting + len(call.requests) <= self._room

    def _work(self) -> None:
        while self._wait():
            self._join()
            if not self._joined or self._missed >= len(self._joined):
                self._missed = 0
                if batch := self._take():
                    self._compute(batch)
            if self._joined:
                self._advance()

    def _wait(self) -> bool:
        """Wait for something to compute; False when the reader is closed and nothing waits."""
        with self._changed:
            while not self._calls and not self._joined:
                if self._closed:
                    return False
                self._changed.wait()
            if self._resting:
                self._resting -= 1
                return True
            while not (self._alone or self._closed or self._full()):
                if not self._changed.wait(self._window):
                    self._away = 0
                    self._resting, self._rest = self._rest, 2 * self._rest
                    return True
                if self._full():
                    self._rest = 1
            return True

    def _join(self) -> None:
        """Hand the calls for replies to a continuous reader."""
        if self._ongoing is None:
            return
        with self._changed:
            joining = [call for call in self._calls if self._can_join(call)]
            self._calls = deque(call for call in self._calls if not self._can_join(call))
        for call in joining:
            (_, options) = call.verb
            try:
                number = self._ongoing.join(call.requests, **dict(options))
            except BaseException as error:
                self._fail(call, error)
                continue
            with self._changed:
                self._joined[number] = call

    def _can_join(self, call: _Call) -> bool:
        return self._ongoing is not None and call.verb[0] in REPLIES

    def _advance(self) -> None:
        """Write a little more of the joined calls. If that fails, each is computed alone, since one
        caused the failure."""
        assert self._ongoing is not None
        assert self._joins is not None
        try:
            complete = self._ongoing.advance()
        except BaseException:
            complete = None  # out of this block the memory of the failed pass is free again
        if complete is None:
            calls = list(self._joined.values())
            self._ongoing = self._joins.ongoing()
            for call in calls:
                self._compute([(call, place) for place in range(len(call.requests))])
            with self._changed:
                self._joined.clear()
                self._changed.notify_all()
            return
        with self._changed:
            self._missed += sum(not self._can_join(call) for call in self._calls)
            for number, replies in complete.items():
                call = self._joined.pop(number)
                call.answers = dict(enumerate(replies))
                self._answer(call)
            if complete:
                self._changed.notify_all()

    def _take(self) -> Taken:
        """The next batch; empty if nothing waits for one."""
        with self._changed:
            batch = self._round([call for call in self._calls if not self._can_join(call)])
            self._calls = deque(call for call in self._calls if call.left)
            self._changed.notify_all()
            return batch

    def _full(self) -> bool:
        samples = sum(_samples(each) for call in self._calls for each in call.requests)
        return not self._away or samples >= self._batch

    def _round(self, calls: Sequence[_Call]) -> Taken:
        """One request in turn of each call with the oldest call's verb, until the batch is full; or
        all requests of the oldest call."""
        alike = [call for call in calls if call.verb == calls[0].verb]
        alike = alike[:1] if self._alone else alike
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
        except BaseException as error:
            if len(calls) == 1:
                self._fail(calls[0], error)
                return
            answered = None  # out of this block the memory of the failed batch is free again
        if answered is None:
            for call in calls:
                self._compute([(one, place) for one, place in batch if one is call])
            return
        for (call, place), answer in answered:
            call.answers[place] = answer
        for call in calls:
            if len(call.answers) == len(call.requests):
                self._answer(call)

    def _fail(self, call: _Call, error: BaseException) -> None:
        """Give the error to the call's thread, and compute nothing more for it."""
        with self._changed:
            call.error = error
            call.begun = len(call.requests)
            self._calls = deque(each for each in self._calls if each is not call)
            self._changed.notify_all()
        self._answer(call)

    def _answer(self, call: _Call) -> None:
        """Let the thread go on."""
        with self._changed:
            self._away += 1
        call.done.set()


def _samples(request: Any) -> int:
    return request.n if isinstance(request, GenerationRequest) else 1
