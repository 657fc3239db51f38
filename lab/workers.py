"""Processes that answer and measure questions, each with a reader of its own.

Processes first, one per core or GPU; and threads within each, whose questions share the reader's
passes (see `readers._scheduler`).

Invariant: whatever becomes of a worker, every item that was given out comes back once: with its
run, or with the error that took its place. A worker ends when the process that started it does.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple, Protocol, Self

from pydantic import JsonValue

from hopscope.lab import environment
from hopscope.lab.experiment import Models
from hopscope.runtime.errors import HopscopeError, UsageError
from hopscope.runtime.types import Appraisal, Credit, Run, RunError
from hopscope.store.experiment_records import Claimed


class Done(NamedTuple):
    """What became of an item."""

    run: Run | None
    credits: tuple[Credit, ...] = ()
    appraisals: tuple[Appraisal, ...] = ()
    error: RunError | None = None
    """Why it counts as failed."""


class Bench(Protocol):
    """All that is needed to answer and measure questions."""

    @property
    def models(self) -> Models: ...

    def do(self, claimed: Claimed) -> Done:
        """Answer and measure one; threads may call it at the same time."""
        ...


END_SECONDS = 15.0
"""How long an idle worker may take to deliver its spans and end."""

Opening = Callable[[], AbstractContextManager[Bench]]
"""Makes a bench in the process that calls it; can be sent to one."""


class Ready(NamedTuple):
    """A worker has loaded its models."""

    models: Models
    hardware: dict[str, JsonValue]


class Trouble(NamedTuple):
    """A worker could not load them."""

    message: str
    usage: bool
    """The user can change that."""


class Finished(NamedTuple):
    """A worker has done an item."""

    ticket: int
    done: Done


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    ready: bool = False
    at: dict[int, Claimed] = field(default_factory=dict)
    """What it was given, by ticket."""


class Pool:
    """Workers, started together.

    with Pool(opening, workers=4) as pool:
        ready = pool.first()
        while pool.idle and more:
            pool.submit(more.pop())
        for claimed, done in pool.wait(1.0): ...
    """

    def __init__(
        self,
        opening: Opening,
        *,
        workers: int,
        threads: int = 1,
        deterministic: bool = False,
        only: int | None = None,
    ) -> None:
        """
        Args:
            workers: among whom the cores are shared.
            threads: items that a worker is at at a time.
            only: so many are started, as if the others were there too; by default all.
        """
        self._opening = opening
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
            UsageError, HopscopeError: it could not load its models.
        """
        while self._ready is None:
            self.wait(1.0)
        return self._ready

    @property
    def idle(self) -> int:
        """How many more items the workers can take."""
        return sum(self._each - len(worker.at) for worker in self._workers if worker.ready)

    @property
    def busy(self) -> int:
        """Items given out."""
        return sum(len(worker.at) for worker in self._workers)

    def submit(self, claimed: Claimed) -> None:
        """Give an item to the worker with least to do."""
        worker = min((w for w in self._workers if w.ready), key=lambda w: len(w.at))
        ticket = next(self._tickets)
        worker.at[ticket] = claimed
        try:
            worker.pipe.send((ticket, claimed))
        except OSError:  # it died meanwhile; `wait` will find out
            return

    def wait(self, seconds: float) -> list[tuple[Claimed, Done]]:
        """What was done, as soon as there is any; nothing if that takes longer.

        Raises:
            UsageError, HopscopeError: a worker could not load its models.
        """
        by_pipe: dict[object, _Worker] = {worker.pipe: worker for worker in self._workers}
        found: list[tuple[Claimed, Done]] = []
        for pipe in wait([worker.pipe for worker in self._workers], timeout=seconds):
            worker = by_pipe[pipe]
            try:
                messages = [worker.pipe.recv()]
            except (EOFError, OSError):
                messages = self._bury(worker)
            for message in messages:
                if isinstance(message, Ready):
                    self._welcome(worker, message)
                elif isinstance(message, Trouble):
                    raise (UsageError if message.usage else HopscopeError)(message.message)
                else:
                    found.append((worker.at.pop(message.ticket), message.done))
        return found

    def close(self) -> None:
        """End the workers, also in the middle of an item."""
        for worker in self._workers:
            worker.pipe.close()  # tells those that wait that nothing will come
        for worker in self._workers:
            if worker.ready and not worker.at:
                worker.process.join(END_SECONDS)
            worker.process.kill()
            worker.process.join()
            worker.process.close()

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_serve,
            args=(theirs, self._opening, self._each, self._deterministic),
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
                f"{self._ready.models}; begin again"
            )
        worker.ready = True

    def _bury(self, worker: _Worker) -> list[Finished] | list[Trouble]:
        """Put another in the place of a worker that died."""
        worker.process.join()
        code = worker.process.exitcode
        if not worker.ready:
            return [Trouble(f"a worker ended with exit code {code} before it was ready", False)]
        self._workers[self._workers.index(worker)] = self._start()
        message = f"the process that was at it ended with exit code {code}"
        if code == -signal.SIGKILL:
            message += "; out of memory? try fewer --workers"
        lost = Done(None, error=RunError(type="WorkerDied", message=message))
        return [Finished(ticket, lost) for ticket in worker.at]


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Let torch in processes that are started now compute in so many threads, which do not keep a
    core busy while they wait, unless the user has said otherwise: threads that are more than the
    cores, or fight for them, make all slow."""
    wanted = {"OMP_NUM_THREADS": str(number), "OMP_WAIT_POLICY": "passive"}
    new = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]


def _serve(pipe: Connection, opening: Opening, threads: int, deterministic: bool) -> None:
    """A worker's life."""
    # These often go to all processes of a group; the one that started this decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        if deterministic:
            environment.make_deterministic()
        with opening() as bench, ThreadPoolExecutor(threads) as pool:
            pipe.send(Ready(bench.models, environment.hardware()))
            sending = threading.Lock()

            def work(ticket: int, claimed: Claimed) -> None:
                try:
                    done = attempt(bench, claimed)
                    with sending:
                        pipe.send(Finished(ticket, done))
                except BaseException:  # no one would hear of it in a thread, and the item be lost
                    os._exit(1)

            while True:
                ticket, claimed = pipe.recv()
                pool.submit(work, ticket, claimed)
    except HopscopeError as error:
        pipe.send(Trouble(str(error), isinstance(error, UsageError)))
    except (EOFError, OSError):  # nobody is there any more
        return


def attempt(bench: Bench, claimed: Claimed) -> Done:
    """What becomes of an item: one that breaks the bench is a row with its error, no more."""
    try:
        return bench.do(claimed)
    except Exception as error:
        return Done(None, error=RunError(type=type(error).__name__, message=str(error)))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
