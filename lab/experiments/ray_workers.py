"""Actors on a Ray cluster that answer and measure questions, each with its own reader.

Items are sent in chunks, which reduces the share of communication. If an actor is lost, no item of
its chunk has come back yet: its items are sent again, one by one, since one of them may have ended
the actor. An item that ends three actors fails with an error.

Every node must have Hopscope installed, and find corpus and models under the same names.
"""

import os
import socket
from collections import Counter, deque
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

from hopscope.lab.experiments import environment
from hopscope.lab.experiments.workers import ItemResult, LoadFailure, Ready, RunnerFactory, attempt
from hopscope.runtime.errors import HopscopeError, MissingExtraError, UsageError
from hopscope.runtime.types import RunError
from hopscope.store.experiments.records import ClaimedItem

CHUNK = 4
"""Items sent to an actor at a time."""

LOST = 3
"""Lost actors after which an item, or loading the models, is given up."""

ANSWER_SECONDS = 10.0
"""Time limit for the head of a cluster to answer."""


class Worker:
    """The class of an actor."""

    def __init__(self, factory: RunnerFactory, deterministic: bool) -> None:
        self._factory = factory
        self._deterministic = deterministic
        self._open = ExitStack()

    def open(self) -> Ready | LoadFailure:
        """Load the models."""
        try:
            if self._deterministic:
                environment.make_deterministic()
            self._runner = self._open.enter_context(self._factory())
        except HopscopeError as error:
            return LoadFailure(str(error), isinstance(error, UsageError))
        return Ready(self._runner.models, environment.hardware())

    def do(self, chunk: list[ClaimedItem]) -> list[ItemResult]:
        return [attempt(self._runner, claimed) for claimed in chunk]


@dataclass(eq=False)
class _Actor:
    """An actor and its current work."""

    handle: Any
    promise: Any
    """The promise of its results; None when it is idle."""
    chunk: list[ClaimedItem]
    ready: bool = False


class RayPool:
    """Like `lab.experiments.workers.Pool`, on the cluster at `address`, or on a cluster of this
    machine.

    Raises:
        MissingExtraError: without the extra `ray`.
        UsageError: there is no such cluster, or no processor in it.
    """

    def __init__(
        self,
        factory: RunnerFactory,
        *,
        workers: int,
        address: str | None = None,
        deterministic: bool = False,
        chunk: int = CHUNK,
    ) -> None:
        if find_spec("ray") is None:
            raise MissingExtraError("a Ray cluster (--executor ray)", "ray")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
        self._ray: Any = import_module("ray")
        self._factory, self._deterministic, self._chunk = factory, deterministic, chunk
        self._waiting: deque[ClaimedItem] = deque()
        self._lost: Counter[int] = Counter()  # number of lost actors, by item position
        self._unopened = 0
        self._ready: Ready | None = None
        self._actors: list[_Actor] = []
        self._ours = not self._ray.is_initialized()
        self._connect(address, workers)
        try:
            resources = self._ray.cluster_resources()
            if not resources.get("CPU"):
                raise UsageError("the Ray cluster has no processor: start one of its nodes")
            self._needs = {"num_cpus": 1, "num_gpus": min(1, resources.get("GPU", 0) / workers)}
            self._actors = [self._start() for _ in range(workers)]
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def first(self) -> Ready:
        """Wait until a worker is ready."""
        while self._ready is None:
            self.wait(1.0)
        return self._ready

    @property
    def idle(self) -> int:
        free = sum(actor.ready and actor.promise is None for actor in self._actors)
        return max(0, free * self._chunk - len(self._waiting))

    @property
    def busy(self) -> int:
        return len(self._waiting) + sum(len(actor.chunk) for actor in self._actors)

    def submit(self, claimed: ClaimedItem) -> None:
        self._waiting.append(claimed)

    def wait(self, seconds: float) -> list[tuple[ClaimedItem, ItemResult]]:
        self._deal()
        by_promise = {actor.promise: actor for actor in self._actors if actor.promise is not None}
        if not by_promise:
            return []
        promises = list(by_promise)
        self._ray.wait(promises, timeout=seconds)
        kept, _ = self._ray.wait(promises, num_returns=len(promises), timeout=0)
        return [pair for promise in kept for pair in self._take(by_promise[promise])]

    def close(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor.handle)
        self._actors = []
        if self._ours:
            self._ray.shutdown()

    def _connect(self, address: str | None, workers: int) -> None:
        if not self._ours:
            return
        options: dict[str, Any] = {}
        if address is None:
            options = {"num_cpus": workers, "_node_ip_address": "127.0.0.1"}
        try:
            if address is not None:  # Ray itself would try for minutes
                host, _, port = address.rpartition(":")
                socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
            self._ray.init(
                address=address or "local",
                include_dashboard=None if address else False,
                log_to_driver=False,
                logging_level="ERROR",
                **options,
            )
        except (OSError, ValueError, RuntimeError, self._ray.exceptions.RayError) as error:
            reason = str(error).strip().splitlines()[-1] if str(error) else type(error).__name__
            raise UsageError(
                f"no Ray cluster at {address or 'this machine'}: {reason}; give the HOST:PORT that "
                "`ray start --head` prints"
            ) from error

    def _start(self) -> _Actor:
        kind = self._ray.remote(Worker)
        handle = kind.options(scheduling_strategy="SPREAD", **self._needs).remote(
            self._factory, self._deterministic
        )
        return _Actor(handle, handle.open.remote(), [])

    def _deal(self) -> None:
        """Send the waiting items to idle actors in equal parts; an item that lost an actor goes
        alone."""
        free = [actor for actor in self._actors if actor.ready and actor.promise is None]
        for left, actor in zip(range(len(free), 0, -1), free, strict=True):
            if not self._waiting:
                return
            size = min(self._chunk, -(-len(self._waiting) // left))
            actor.chunk = [self._waiting.popleft()]
            while (
                len(actor.chunk) < size
                and not self._lost[actor.chunk[0].position]
                and not self._lost[self._waiting[0].position]
            ):
                actor.chunk.append(self._waiting.popleft())
            actor.promise = actor.handle.do.remote(actor.chunk)

    def _take(self, actor: _Actor) -> list[tuple[ClaimedItem, ItemResult]]:
        """The results of an actor's promise."""
        chunk, promise, actor.chunk, actor.promise = actor.chunk, actor.promise, [], None
        try:
            found = self._ray.get(promise)
        except self._ray.exceptions.RayError as error:
            return self._replace(actor, chunk, error)
        if isinstance(found, LoadFailure):
            raise (UsageError if found.usage else HopscopeError)(found.message)
        if isinstance(found, Ready):
            self._welcome(actor, found)
            return []
        return list(zip(chunk, found, strict=True))

    def _welcome(self, actor: _Actor, ready: Ready) -> None:
        self._ready = self._ready or ready
        if ready.models != self._ready.models:
            raise UsageError(
                f"the nodes of the cluster have different models: {ready.models} and "
                f"{self._ready.models}"
            )
        actor.ready, self._unopened = True, 0

    def _replace(
        self, actor: _Actor, chunk: list[ClaimedItem], error: Exception
    ) -> list[tuple[ClaimedItem, ItemResult]]:
        """Replace a lost actor and queue its items again; returns those that are given up."""
        self._ray.kill(actor.handle)  # it may only have been out of reach
        lines = str(error).strip().splitlines()
        if not actor.ready:
            self._unopened += 1
            if self._unopened >= LOST:
                raise HopscopeError(f"{LOST} workers were lost before they were ready: {lines[-1]}")
        self._actors[self._actors.index(actor)] = self._start()
        given_up: list[tuple[ClaimedItem, ItemResult]] = []
        for claimed in reversed(chunk):
            self._lost[claimed.position] += 1
            if self._lost[claimed.position] < LOST:
                self._waiting.appendleft(claimed)
            else:
                told = RunError(
                    type="WorkerDied", message=f"{LOST} workers were lost at it: {lines[0]}"
                )
                given_up.append((claimed, ItemResult(None, error=told)))
        return given_up
