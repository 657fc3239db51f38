"""Run the pending items of an experiment until none are left or a stop is requested.

One process claims items, hands them to workers and writes their results, so that the workers
never wait for each other's writes.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

from hopscope.lab.experiments import environment
from hopscope.lab.experiments.executor import Executor
from hopscope.lab.experiments.workers import ItemResult
from hopscope.runtime.errors import UnstorableError
from hopscope.runtime.types import RunError
from hopscope.store.experiments.experiments import Experiments
from hopscope.store.experiments.records import ClaimedItem

SIGN_OF_LIFE_SECONDS = 20.0
"""The store takes a session for dead after 90."""
POLL_SECONDS = 0.5

Report = Callable[[ClaimedItem, ItemResult], None]


class Stop:
    """A request to stop: the first SIGINT or SIGTERM sets it, the second raises
    KeyboardInterrupt."""

    def __init__(
        self, notify: Callable[[], None], requested: threading.Event | None = None
    ) -> None:
        """Another thread may set `requested`."""
        self._requested = requested or threading.Event()
        self._notify = notify

    @property
    def asked(self) -> bool:
        return self._requested.is_set()

    def __call__(self, _: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self._requested.set()
        self._notify()


@contextmanager
def stopping(notify: Callable[[], None]) -> Iterator[Stop]:
    """Treat SIGINT and SIGTERM as a request to stop; the first one calls `notify`."""
    stop = Stop(notify)
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def end_dead_sessions(experiments: Experiments, name: str) -> list[str]:
    """End the worker sessions of dead processes on this machine. Returns the owners of the others,
    which may be alive."""
    others: list[str] = []
    for number, owner in experiments.open_sessions(name).items():
        if environment.is_dead(owner):
            experiments.end_session(number)
        else:
            others.append(owner)
    return others


def work(
    experiments: Experiments, session: int, pool: Executor, *, stop: Stop, report: Report
) -> None:
    """Run the pending items. On a request to stop, finish running items, start no more."""
    seen = time.monotonic()
    while True:
        if pool.idle and not stop.asked:
            for claimed in experiments.claim(session, pool.idle):
                pool.submit(claimed)
        if not pool.busy:
            return
        for claimed, done in pool.wait(POLL_SECONDS):
            try:
                kept = _complete(experiments, session, claimed, done)
            except UnstorableError as error:
                done = ItemResult(
                    None, error=RunError(type=type(error).__name__, message=str(error))
                )
                kept = _complete(experiments, session, claimed, done)
            if kept:
                report(claimed, done)
        if time.monotonic() - seen > SIGN_OF_LIFE_SECONDS:
            experiments.keep_alive(session)
            seen = time.monotonic()


def _complete(
    experiments: Experiments, session: int, claimed: ClaimedItem, done: ItemResult
) -> bool:
    return experiments.complete(
        session,
        claimed,
        done.run,
        credits=done.credits,
        appraisals=done.appraisals,
        games=done.games,
        error=done.error,
    )


def trial(pool: Executor, items: Iterable[ClaimedItem]) -> list[tuple[ClaimedItem, ItemResult]]:
    """Run some items without storing the results."""
    pending, results = list(items), []
    while pending or pool.busy:
        while pending and pool.idle:
            pool.submit(pending.pop(0))
        results += pool.wait(POLL_SECONDS)
    return results
