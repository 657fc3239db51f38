"""Work on an experiment until nothing is left of it, or until somebody wants it to stop.

One process claims items, hands them to workers and writes what comes back, so that the workers
never wait for each other's writes.
"""

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

from hopscope.lab import environment
from hopscope.lab.executor import Executor
from hopscope.lab.workers import Done
from hopscope.runtime.errors import Unstorable
from hopscope.runtime.types import RunError
from hopscope.store.experiment_records import Claimed
from hopscope.store.experiments import Experiments

SIGN_OF_LIFE_SECONDS = 20.0
"""The store takes a sitting for dead after 90."""
POLL_SECONDS = 0.5

Report = Callable[[Claimed, Done], None]


class Stop:
    """Whether somebody wants the work to stop: the first SIGINT or SIGTERM asks for that, the
    second raises KeyboardInterrupt."""

    def __init__(self, told: Callable[[], None]) -> None:
        self.asked = False
        self._told = told

    def __call__(self, _: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._told()


@contextmanager
def stopping(told: Callable[[], None]) -> Iterator[Stop]:
    """Take signals to end for wishes to stop; `told` is called at the first."""
    stop = Stop(told)
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def bury_the_dead(experiments: Experiments, name: str) -> list[str]:
    """End the sittings of processes of this machine that are dead; the owners of the others, which
    may be at work."""
    others: list[str] = []
    for number, owner in experiments.open_sittings(name).items():
        if environment.is_dead(owner):
            experiments.leave(number)
        else:
            others.append(owner)
    return others


def work(
    experiments: Experiments, sitting: int, pool: Executor, *, stop: Stop, report: Report
) -> None:
    """Do what is pending. Told to stop, finish what was begun and begin no more."""
    seen = time.monotonic()
    while True:
        if pool.idle and not stop.asked:
            for claimed in experiments.claim(sitting, pool.idle):
                pool.submit(claimed)
        if not pool.busy:
            return
        for claimed, done in pool.wait(POLL_SECONDS):
            try:
                kept = _complete(experiments, sitting, claimed, done)
            except Unstorable as error:
                done = Done(None, error=RunError(type=type(error).__name__, message=str(error)))
                kept = _complete(experiments, sitting, claimed, done)
            if kept:
                report(claimed, done)
        if time.monotonic() - seen > SIGN_OF_LIFE_SECONDS:
            experiments.live(sitting)
            seen = time.monotonic()


def _complete(experiments: Experiments, sitting: int, claimed: Claimed, done: Done) -> bool:
    return experiments.complete(
        sitting,
        claimed,
        done.run,
        credits=done.credits,
        appraisals=done.appraisals,
        error=done.error,
    )


def trial(pool: Executor, items: Iterable[Claimed]) -> list[tuple[Claimed, Done]]:
    """Do some items and keep nothing."""
    left, found = list(items), []
    while left or pool.busy:
        while left and pool.idle:
            pool.submit(left.pop(0))
        found += pool.wait(POLL_SECONDS)
    return found
