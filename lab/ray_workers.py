"""Actors on a Ray cluster that answer and measure questions, each with a reader of its own.

Items go out in chunks, so that the way there and back counts for less than the work. Of a chunk
whose actor is lost, with its node or alone, nothing has come back yet: its items go out again, one
by one, since one of them may be what ended it. One that ends three is given up, with an error.

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

from hopscope.lab import environment
from hopscope.lab.workers import Done, Opening, Ready, Trouble, attempt
from hopscope.runtime.errors import HopscopeError, MissingExtra, UsageError
from hopscope.runtime.types import RunError
from hopscope.store.experiment_records import Claimed

CHUNK = 4
"""Items that an actor is given at a time."""

LOST = 3
"""So many lost actors end what was tried with them: an item, or loading the models."""

ANSWER_SECONDS = 10.0
"""How long the head of a cluster may take to answer."""


class Worker:
    """What an actor is made of."""

    def __init__(self, opening: Opening, deterministic: bool) -> None:
        self._opening = opening
        self._deterministic = deterministic
        self._open = ExitStack()

    def open(self) -> Ready | Trouble:
        """Load the models."""
        try:
            if self._deterministic:
                environment.make_deterministic()
            self._bench = self._open.enter_context(self._opening())
        except HopscopeError as error:
            return Trouble(str(error), isinstance(error, UsageError))
        return Ready(self._bench.models, environment.hardware())

    def do(self, chunk: list[Claimed]) -> list[Done]:
        return [attempt(self._bench, claimed) for claimed in chunk]


@dataclass(eq=False)
class _Seat:
    """An actor and what it is at."""

    actor: Any
    flying: Any
    """The promise of what it will give back; None when it is at nothing."""
    chunk: list[Claimed]
    ready: bool = False


class RayPool:
    """As `lab.workers.Pool`, on the cluster at `address`, or on one of this machine made for it.

    Raises:
        MissingExtra: without the extra `ray`.
        UsageError: there is no such cluster, or no processor in it.
    """

    def __init__(
        self,
        opening: Opening,
        *,
        workers: int,
        address: str | None = None,
        deterministic: bool = False,
        chunk: int = CHUNK,
    ) -> None:
        if find_spec("ray") is None:
            raise MissingExtra("--executor ray", "ray")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere unasked
        self._ray: Any = import_module("ray")
        self._opening, self._deterministic, self._chunk = opening, deterministic, chunk
        self._waiting: deque[Claimed] = deque()
        self._lost: Counter[int] = Counter()  # actors, by the position of an item they were at
        self._unopened = 0
        self._ready: Ready | None = None
        self._seats: list[_Seat] = []
        self._ours = not self._ray.is_initialized()
        self._connect(address, workers)
        try:
            resources = self._ray.cluster_resources()
            if not resources.get("CPU"):
                raise UsageError("the Ray cluster has no processor: start one of its nodes")
            self._needs = {"num_cpus": 1, "num_gpus": min(1, resources.get("GPU", 0) / workers)}
            self._seats = [self._seat() for _ in range(workers)]
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
        free = sum(seat.ready and seat.flying is None for seat in self._seats)
        return max(0, free * self._chunk - len(self._waiting))

    @property
    def busy(self) -> int:
        return len(self._waiting) + sum(len(seat.chunk) for seat in self._seats)

    def submit(self, claimed: Claimed) -> None:
        self._waiting.append(claimed)

    def wait(self, seconds: float) -> list[tuple[Claimed, Done]]:
        self._deal()
        by_promise = {seat.flying: seat for seat in self._seats if seat.flying is not None}
        if not by_promise:
            return []
        promises = list(by_promise)
        self._ray.wait(promises, timeout=seconds)
        kept, _ = self._ray.wait(promises, num_returns=len(promises), timeout=0)
        return [pair for promise in kept for pair in self._take(by_promise[promise])]

    def close(self) -> None:
        for seat in self._seats:
            self._ray.kill(seat.actor)
        self._seats = []
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
                "`ray start --head` tells"
            ) from error

    def _seat(self) -> _Seat:
        kind = self._ray.remote(Worker)
        actor = kind.options(scheduling_strategy="SPREAD", **self._needs).remote(
            self._opening, self._deterministic
        )
        return _Seat(actor, actor.open.remote(), [])

    def _deal(self) -> None:
        """Give what waits to those that are free, in equal parts; alone what an actor was lost
        with."""
        free = [seat for seat in self._seats if seat.ready and seat.flying is None]
        for left, seat in zip(range(len(free), 0, -1), free, strict=True):
            if not self._waiting:
                return
            size = min(self._chunk, -(-len(self._waiting) // left))
            seat.chunk = [self._waiting.popleft()]
            while (
                len(seat.chunk) < size
                and not self._lost[seat.chunk[0].position]
                and not self._lost[self._waiting[0].position]
            ):
                seat.chunk.append(self._waiting.popleft())
            seat.flying = seat.actor.do.remote(seat.chunk)

    def _take(self, seat: _Seat) -> list[tuple[Claimed, Done]]:
        """What a seat's promise holds."""
        chunk, promise, seat.chunk, seat.flying = seat.chunk, seat.flying, [], None
        try:
            found = self._ray.get(promise)
        except self._ray.exceptions.RayError as error:
            return self._replace(seat, chunk, error)
        if isinstance(found, Trouble):
            raise (UsageError if found.usage else HopscopeError)(found.message)
        if isinstance(found, Ready):
            self._welcome(seat, found)
            return []
        return list(zip(chunk, found, strict=True))

    def _welcome(self, seat: _Seat, ready: Ready) -> None:
        self._ready = self._ready or ready
        if ready.models != self._ready.models:
            raise UsageError(
                f"the nodes of the cluster have different models: {ready.models} and "
                f"{self._ready.models}"
            )
        seat.ready, self._unopened = True, 0

    def _replace(
        self, seat: _Seat, chunk: list[Claimed], error: Exception
    ) -> list[tuple[Claimed, Done]]:
        """Put an actor in the place of one that was lost, and send out again what it was at; what
        is given up of that."""
        self._ray.kill(seat.actor)  # it may only have been out of reach
        lines = str(error).strip().splitlines()
        if not seat.ready:
            self._unopened += 1
            if self._unopened >= LOST:
                raise HopscopeError(f"{LOST} workers were lost before they were ready: {lines[-1]}")
        self._seats[self._seats.index(seat)] = self._seat()
        given_up: list[tuple[Claimed, Done]] = []
        for claimed in reversed(chunk):
            self._lost[claimed.position] += 1
            if self._lost[claimed.position] < LOST:
                self._waiting.appendleft(claimed)
            else:
                told = RunError(
                    type="WorkerDied", message=f"{LOST} workers were lost at it: {lines[0]}"
                )
                given_up.append((claimed, Done(None, error=told)))
        return given_up
