"""Progress of experiments while `hopscope eval` goes on, as server-sent events.

A stream tells the progress at once, then whenever it changes, and ends with the event `done` when
nothing is left. It is bounded: `MOST` streams at a time, each `LONGEST` seconds, after which the
browser opens another. Whoever gets none asks `/api/progress` again and again instead.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse

from hopscope.store.experiments.records import Progress
from hopscope.store.store import Store
from hopscope.view.server.guarding import OWN_SITES

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MOST = 32
"""Streams at a time, of all pages together."""
LONGEST = 600.0
"""Seconds of a stream."""
EVERY = 1.0
"""Seconds between two looks at the database, whatever the number of streams."""
NAP = 0.2
"""Seconds between two looks at whether the server ends."""
SIGN = 15.0
"""Seconds without an event after which a sign of life is sent: without it nobody would notice that
the other side has gone."""
NAMED = 50
"""Experiments in one stream, as many as a page lists."""

Names = Annotated[
    list[str], Query(alias="experiment", max_length=NAMED, description="Names of experiments.")
]


class LiveProgress:
    """The streams of one server."""

    def __init__(
        self,
        store: Store,
        *,
        stopping: Callable[[], bool] = lambda: False,
        most: int = MOST,
        longest: float = LONGEST,
        every: float = EVERY,
        sign: float = SIGN,
    ) -> None:
        """
        Args:
            stopping: whether the server ends, and all streams with it.
        """
        self._store, self._stopping = store, stopping
        self._most, self._longest, self._every, self._sign = most, longest, every, sign
        self._lock = Lock()
        self._known: dict[str, tuple[float, Progress]] = {}
        self.open = 0
        """Streams now."""

    @property
    def full(self) -> bool:
        return self.open >= self._most

    def progress(self, names: list[str]) -> dict[str, Progress]:
        """Of these experiments, at most `every` seconds old. Threads share it.

        Raises:
            UsageError: there is no such experiment.
        """
        found = {}
        for name in names:
            with self._lock:
                seen, told = self._known.get(name, (-self._every, None))
            if told is None or monotonic() - seen >= self._every:
                told = self._store.experiments.progress(name)
                with self._lock:
                    self._known = {
                        other: known
                        for other, known in self._known.items()
                        if monotonic() - known[0] < self._every
                    } | {name: (monotonic(), told)}
            found[name] = told
        return found

    async def events(self, names: list[str], first: Mapping[str, Progress]) -> AsyncIterator[str]:
        """Blocks of the stream, from the progress that is known already."""
        yield "retry: 2000\n\n"
        begun = told = monotonic()
        now, before = first, dict[str, Progress]()
        while True:
            for name in names:
                if before.get(name) != now[name]:
                    yield _event("progress", {"experiment": name, **now[name].model_dump()})
                    told = monotonic()
            if not any(each.pending + each.running for each in now.values()):
                yield _event("done", {})
                return
            before = dict(now)
            if not await self._slept(begun):
                return
            if monotonic() - told >= self._sign:
                yield ": still there\n\n"
                told = monotonic()
            now = await run_in_threadpool(self.progress, names)

    async def _slept(self, begun: float) -> bool:
        """Wait until it is time for another look; False if the stream ends instead."""
        until = monotonic() + self._every
        while (left := until - monotonic()) > 0:
            if self._stopping() or monotonic() - begun >= self._longest:
                return False
            await asyncio.sleep(min(NAP, left))
        return True


class EventStream(StreamingResponse):
    """A response that counts among the streams as long as it is sent."""

    media_type = "text/event-stream"

    def __init__(self, live: LiveProgress, events: AsyncIterator[str]) -> None:
        super().__init__(events)
        self._live = live

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        self._live.open += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._live.open -= 1


def router(live: LiveProgress) -> APIRouter:
    """The route of the streams."""
    routes = APIRouter(prefix="/api")

    @routes.get(
        "/events",
        status_code=200,
        response_class=EventStream,
        responses={
            200: {"content": {"text/event-stream": {}}, "description": "Server-sent events."},
            403: {"description": "Another site asked."},
            503: {"description": "There are too many streams: ask /api/progress."},
        },
    )
    async def events(request: Request, experiment: Names) -> Response:
        """Progress of experiments as server-sent events: `progress` with the record of
        `/api/progress` and the experiment's name whenever it changes, `done` when nothing is
        left."""
        if request.headers.get("sec-fetch-site", "same-origin") not in OWN_SITES:
            return JSONResponse({"detail": "another site may open no stream"}, status_code=403)
        if live.full:
            detail = "there are too many streams: ask /api/progress"
            return JSONResponse({"detail": detail}, 503, headers={"retry-after": "2"})
        names = list(dict.fromkeys(experiment))
        first = await run_in_threadpool(live.progress, names)
        return EventStream(live, live.events(names, first))

    return routes


def _event(name: str, value: Mapping[str, Any]) -> str:
    """JSON has no line feeds, so that no name of an experiment ends the event."""
    return f"event: {name}\ndata: {json.dumps(value)}\n\n"
