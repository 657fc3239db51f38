"""Worker processes that answer and measure questions, each with its own reader.

Use processes first, one per core or GPU, then threads within each, whose questions share the
reader's passes (see `runtime.wrappers.scheduled_reader`).

Invariant: even if a worker dies, every submitted item comes back exactly once, with its run or an
error. A worker ends when the process that started it ends.
"""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple, Protocol, Self

from pydantic import JsonValue

from hopscope.lab.experiments import environment
from hopscope.lab.experiments.concurrency import ONE, Concurrency
from hopscope.lab.experiments.experiment import Models
from hopscope.runtime.errors import HopscopeError, UsageError
from hopscope.runtime.types import Appraisal, Credit, GameValues, Run, RunError
from hopscope.store.experiments.records import ClaimedItem


class ItemResult(NamedTuple):
    """The result of an item."""

    run: Run | None
    credits: tuple[Credit, ...] = ()
    appraisals: tuple[Appraisal, ...] = ()
    error: RunError | None = None
    """The reason it counts as failed."""
    games: tuple[GameValues, ...] = ()


class Runner(Protocol):
    """Answers questions and measures the answers."""

    @property
    def models(self) -> Models: ...

    @property
    def at_once(self) -> Concurrency:
        """Number of items that it is made for at the same time, with the reason."""
        ...

    def do(self, claimed: ClaimedItem) -> ItemResult:
        """Answer and measure one item; threads may call it at the same time."""
        ...


END_SECONDS = 15.0
"""Time for an idle worker to deliver its spans and end."""

RunnerFactory = Callable[[], AbstractContextManager[Runner]]
"""Makes a runner in the calling process; can be pickled."""


class Ready(NamedTuple):
    """Message: a worker has loaded its models."""

    models: Models
    hardware: dict[str, JsonValue]
    at_once: Concurrency = ONE
    """Items that it processes concurrently."""


class LoadFailure(NamedTuple):
    """Message: a worker could not load its models."""

    message: str
    usage: bool
    """Whether it is a usage error, which the user can correct."""


class FinishedItem(NamedTuple):
    """Message: a worker has finished an item."""

    ticket: int
    done: ItemResult


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    threads: int = 0
    """Items that it processes concurrently; 0 until it is ready."""
    items: dict[int, ClaimedItem] = field(default_factory=dict)
    """Its unfinished items, by ticket."""
    again: deque[ClaimedItem] = field(default_factory=deque)
    """Items that died with the worker before it. They are processed one at a time, so that only
    the one that kills its worker fails."""

    @property
    def room(self) -> int:
        """Number of further items that it can take."""
        return 0 if self.again else self.threads - len(self.items)


class Pool:
    """Workers, started together.

    with Pool(factory, workers=4) as pool:
        ready = pool.first()
        while pool.idle and more:
            pool.submit(more.pop())
        for claimed, done in pool.wait(1.0): ...
    """

    def __init__(
        self,
        factory: RunnerFactory,
        *,
        workers: int,
        threads: int | None = 1,
        deterministic: bool = False,
        only: int | None = None,
    ) -> None:
        """
        Args:
            workers: number of workers that share the cores.
            threads: items each worker processes concurrently; None takes its runner's number.
            only: number of workers to start; each gets its share of the cores as if all ran.
                By default all.
        """
        self._factory = factory
        self._each = threads
        self._deterministic = deterministic
        self._tickets = count()
        self._context = get_context("spawn")
        self._ready: Ready | None = None
        self._threads = max(1, (os.cpu_count() or 1) // workers)
        self._workers = [self._start() for _ in range(workers if only is None else only)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def first(self) -> Ready:
        """Wait until a worker is ready.

        Raises:
            UsageError, HopscopeError: a worker could not load its models.
        """
        while self._ready is None:
            self.wait(1.0)
        return self._ready

    @property
    def idle(self) -> int:
        """Number of further items that the workers can take."""
        return sum(worker.room for worker in self._workers)

    @property
    def busy(self) -> int:
        """Number of submitted items that have not come back."""
        return sum(len(worker.items) + len(worker.again) for worker in self._workers)

    def submit(self, claimed: ClaimedItem) -> None:
        """Hand an item to the worker that can take most."""
        self._send(max(self._workers, key=lambda worker: worker.room), claimed)

    def _send(self, worker: _Worker, claimed: ClaimedItem) -> None:
        ticket = next(self._tickets)
        worker.items[ticket] = claimed
        try:
            worker.pipe.send((ticket, claimed))
        except OSError:  # it died meanwhile; `wait` handles that
            return

    def wait(self, seconds: float) -> list[tuple[ClaimedItem, ItemResult]]:
        """Results, as soon as there are any; an empty list after `seconds` without one.

        Raises:
            UsageError, HopscopeError: a worker could not load its models.
        """
        by_pipe: dict[object, _Worker] = {worker.pipe: worker for worker in self._workers}
        results: list[tuple[ClaimedItem, ItemResult]] = []
        for pipe in wait([worker.pipe for worker in self._workers], timeout=seconds):
            worker = by_pipe[pipe]
            try:
                messages = [worker.pipe.recv()]
            except (EOFError, OSError):
                messages = self._replace(worker)
            for message in messages:
                if isinstance(message, Ready):
                    self._welcome(worker, message)
                elif isinstance(message, LoadFailure):
                    raise (UsageError if message.usage else HopscopeError)(message.message)
                else:
                    results.append((worker.items.pop(message.ticket), message.done))
                if worker.again and worker.threads and not worker.items:
                    self._send(worker, worker.again.popleft())
        return results

    def close(self) -> None:
        """End the workers, also in the middle of an item."""
        for worker in self._workers:
            worker.pipe.close()  # wakes workers that wait for items
        for worker in self._workers:
            if worker.threads and not worker.items:
                worker.process.join(END_SECONDS)
            worker.process.kill()
            worker.process.join()
            worker.process.close()

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_serve,
            args=(theirs, self._factory, self._each, self._deterministic),
            daemon=True,
        )
        with _threads(self._threads):
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _welcome(self, worker: _Worker, ready: Ready) -> None:
        self._ready = self._ready or ready
        if ready.models != self._ready.models:
            raise UsageError(
                f"the models changed while they were loaded: {ready.models} after "
                f"{self._ready.models}; start again"
            )
        worker.threads = ready.at_once.threads

    def _replace(self, worker: _Worker) -> list[FinishedItem] | list[LoadFailure]:
        """Start a new worker in place of a dead one. Its only unfinished item has failed; of
        several, any may have killed it, and the new worker processes them again."""
        worker.process.join()
        code = worker.process.exitcode
        if not worker.threads:
            return [LoadFailure(f"a worker ended with exit code {code} before it was ready", False)]
        successor = self._start()
        successor.again, worker.again = worker.again, deque()
        self._workers[self._workers.index(worker)] = successor
        if len(worker.items) > 1:
            successor.again.extendleft(reversed(worker.items.values()))
            return []
        message = f"its worker process ended with exit code {code}"
        if code == -signal.SIGKILL:
            message += (
                "; out of memory? try fewer questions at a time (--threads) or workers (--workers)"
            )
        lost = ItemResult(None, error=RunError(type="WorkerDied", message=message))
        return [FinishedItem(ticket, lost) for ticket in worker.items]


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Limit torch to this number of threads in processes started within, without busy waiting,
    unless the user has set these variables: more threads than cores slow all of them down."""
    wanted = {"OMP_NUM_THREADS": str(number), "OMP_WAIT_POLICY": "passive"}
    new = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]


def _serve(
    pipe: Connection, factory: RunnerFactory, threads: int | None, deterministic: bool
) -> None:
    """The main function of a worker process."""
    # Signals often go to the whole process group; the parent process handles them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        if deterministic:
            environment.make_deterministic()
        with ExitStack() as open_until_end:
            runner = open_until_end.enter_context(factory())
            at_once = runner.at_once if threads is None else Concurrency(threads, "--threads")
            pool = open_until_end.enter_context(ThreadPoolExecutor(at_once.threads))
            pipe.send(Ready(runner.models, environment.hardware(), at_once))
            sending = threading.Lock()

            def work(ticket: int, claimed: ClaimedItem) -> None:
                try:
                    done = attempt(runner, claimed)
                    with sending:
                        pipe.send(FinishedItem(ticket, done))
                except BaseException:  # a silent error in a thread would lose the item
                    os._exit(1)

            while True:
                ticket, claimed = pipe.recv()
                pool.submit(work, ticket, claimed)
    except HopscopeError as error:
        pipe.send(LoadFailure(str(error), isinstance(error, UsageError)))
    except (EOFError, OSError):  # the parent process has gone
        return


def attempt(runner: Runner, claimed: ClaimedItem) -> ItemResult:
    """The result of an item; an exception becomes the item's error."""
    try:
        return runner.do(claimed)
    except Exception as error:
        return ItemResult(None, error=RunError(type=type(error).__name__, message=str(error)))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
