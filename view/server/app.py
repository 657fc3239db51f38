"""The application: pages, JSON, static files, errors, and the guard around them."""

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from hopscope.runtime.errors import (
    MissingExperimentError,
    MissingExtraError,
    MissingRunError,
    StoreError,
    UsageError,
)
from hopscope.store.store import Store
from hopscope.view.drawing import EXTRA, script
from hopscope.view.html import asset, render

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from hopscope.view.server.kept import KeptRecords

FILES = {"view.css": "text/css", "view.js": "text/javascript", "vega.js": "text/javascript"}
AGE = "public, max-age=3600"


def application(
    store: Store,
    *,
    hosts: frozenset[str] | None,
    token: str | None = None,
    read_only: bool = False,
    stopping: Callable[[], bool] = lambda: False,
) -> "ASGIApp":
    """The server of a store, which stays open as long as it.

    Args:
        hosts: the `Host` headers that it answers; see `guarding.names`.
        token: that every request must carry; None where only this computer can ask.
        read_only: whether nobody can label.
        stopping: whether the server ends, and all streams with it.

    Raises:
        MissingExtraError: the extra `view` is not installed.
    """
    try:
        from fastapi import FastAPI
        from starlette.responses import Response
    except ImportError:
        raise MissingExtraError("the local view", EXTRA) from None

    from starlette.concurrency import run_in_threadpool

    from hopscope.view.server import pages
    from hopscope.view.server.guarding import FormToken, Guard
    from hopscope.view.server.kept import KeptRecords

    kept = KeptRecords(store)
    shown = FastAPI(openapi_url=None)
    shown.include_router(pages.router(kept, None if read_only else FormToken()))

    @shown.get("/static/{name}", include_in_schema=False)
    def static(name: str) -> Response:
        if name not in FILES:
            return Response(status_code=404)
        headers = {"cache-control": AGE}
        return Response(_file(name), media_type=FILES[name], headers=headers)

    _handle_errors(shown)
    told = cache(partial(_api, kept, stopping))

    async def both(scope: "Scope", receive: "Receive", send: "Send") -> None:
        asked = scope["type"] == "http" and scope["path"].startswith("/api/")
        await (await run_in_threadpool(told) if asked else shown)(scope, receive, send)

    return Guard(both, hosts=hosts, token=token)


def _api(kept: "KeptRecords", stopping: Callable[[], bool]) -> "FastAPI":
    """The JSON API. It is made when it is first asked: to import the records that it describes
    takes longer than to show the list."""
    from fastapi import FastAPI

    from hopscope import __version__
    from hopscope.view.server import live, records

    made = FastAPI(
        title="Hopscope",
        version=__version__,
        description="Stored runs and experiments, as `--json` prints them.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
    )
    made.include_router(live.router(live.LiveProgress(kept.store, stopping=stopping)))
    made.include_router(records.router(kept))
    _handle_errors(made)
    return made


@cache
def _file(name: str) -> str:
    return script() if name == "vega.js" else asset(name)


def _handle_errors(app: "FastAPI") -> None:
    from starlette.responses import HTMLResponse, JSONResponse

    async def told(request: "Request", error: Exception) -> "Response":
        status = 404 if isinstance(error, MissingRunError | MissingExperimentError) else 400
        if isinstance(error, StoreError):
            status = 503
        if request.url.path.startswith("/api/"):
            return JSONResponse({"detail": str(error)}, status_code=status)
        values: dict[str, Any] = {"title": "Not possible", "reason": str(error)}
        return HTMLResponse(render("error.html", **values), status_code=status)

    for kind in (UsageError, StoreError):
        app.add_exception_handler(kind, told)
