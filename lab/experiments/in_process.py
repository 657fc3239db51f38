"""Runs items in threads of this process, with models that are already loaded."""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from hopscope.lab.experiments import environment
from hopscope.lab.experiments.workers import ItemResult, Ready, Runner, attempt
from hopscope.store.experiments.records import ClaimedItem


class InProcessExecutor:
    """An `Executor`. A running item cannot be stopped: leaving the context waits for it, unless an
    exception is raised."""

    def __init__(
        self, factory: Callable[[], AbstractContextManager[Runner]], *, threads: int = 1
    ) -> None:
        self._factory = factory()
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads)
        self._submitted: dict[Future[ItemResult], ClaimedItem] = {}
        self._runner: Runner | None = None

    def __enter__(self) -> Self:
        self._runner = self._factory.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=kind is None, cancel_futures=True)
        self._factory.__exit__(kind, error, trace)

    def first(self) -> Ready:
        assert self._runner is not None
        return Ready(self._runner.models, environment.hardware(), self._runner.at_once)

    @property
    def idle(self) -> int:
        return self._threads - len(self._submitted)

    @property
    def busy(self) -> int:
        return len(self._submitted)

    def submit(self, claimed: ClaimedItem) -> None:
        assert self._runner is not None
        self._submitted[self._pool.submit(attempt, self._runner, claimed)] = claimed

    def wait(self, seconds: float) -> list[tuple[ClaimedItem, ItemResult]]:
        done, _ = wait(self._submitted, timeout=seconds, return_when=FIRST_COMPLETED)
        return [(self._submitted.pop(future), future.result()) for future in done]
