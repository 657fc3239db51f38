"""The application: Search-R1's `POST /retrieve`, and the tool `search` of MCP at `/mcp`.

    POST /retrieve {"queries": ["…"], "topk": 3, "return_scores": true}
    → {"result": [[{"document": {"id": "…", "contents": "…"}, "score": 1.0}, …], …]}

A server beyond this computer asks each request for a token, `Authorization: Bearer TOKEN`; one on
this computer answers only under its own names, so that no page of another site can ask it.
"""

import asyncio
import hmac
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pydantic import ValidationError
from pydantic_core import to_json

from hopscope import __version__
from hopscope.api.searching.batching import Batches, Rankings
from hopscope.api.searching.formats import Passages, Retrieve, of_mcp, of_search_r1
from hopscope.runtime import validation
from hopscope.runtime.errors import HopscopeError, MissingExtraError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST = 4 * 2**20
"""Bytes of a request."""
TOO_LARGE = f"a request may have {LARGEST:,} bytes"


def application(
    batches: Batches, *, hosts: Collection[str] | None, token: str | None = None, k: int = 3
) -> "ASGIApp":
    """The server of an index.

    Args:
        hosts: the `Host` headers that are answered, in lower case; None for any, which needs a
            token.
        token: that every request must carry; None where only this computer can ask.
        k: passages of a search that does not say how many.

    Raises:
        MissingExtraError: the extra `serve` is not installed.
    """
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.transport_security import TransportSecuritySettings
        from starlette.responses import JSONResponse, Response
        from starlette.routing import Route
    except ImportError:
        raise MissingExtraError("the search server", "serve") from None

    async def found(queries: list[str], depth: int) -> Rankings:
        return await asyncio.wrap_future(batches.search(queries, k=depth))

    async def retrieve(request: "Request") -> Response:
        try:
            asked = Retrieve.model_validate_json(await request.body())
        except ValidationError as error:
            told = validation.first(error, whole="the request")
            return JSONResponse({"error": told}, status_code=422)
        try:
            rankings = await found(asked.queries, asked.topk or k)
        except HopscopeError as error:
            return JSONResponse({"error": str(error)}, status_code=502)
        result = [of_search_r1(hits, scores=asked.return_scores) for hits in rankings]
        # A sixth of the time of the standard library, which is a third of what an answer costs.
        return Response(to_json({"result": result}), media_type="application/json")

    async def health(request: "Request") -> Response:
        return JSONResponse({"status": "ok", "index": batches.retriever.name})

    server = MCPServer(
        "hopscope",
        version=__version__,
        instructions=f"Searches {batches.retriever.name}.",
        log_level="WARNING",
    )
    depth = k

    @server.tool(name="search", description="Search the corpus for passages, best first.")
    async def search(query: str, k: int = depth) -> Passages:
        [hits] = await found([query], max(1, min(k, 1000)))
        return of_mcp(hits)

    app = server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        # `Guard` tells by the headers Host and Origin who may ask, whatever their case.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.router.routes.insert(0, Route("/retrieve", retrieve, methods=["POST"]))
    app.router.routes.insert(0, Route("/health", health, methods=["GET"]))
    return Guard(app, hosts=hosts, token=token)


class Guard:
    """ASGI middleware: who may ask."""

    def __init__(self, app: "ASGIApp", *, hosts: Collection[str] | None, token: str | None) -> None:
        if hosts is None and not token:
            raise ValueError("a server that answers under any name needs a token")
        self._app, self._hosts, self._token = app, hosts, token

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        asked = headers.get("host", "").lower()
        hosts = [asked] if self._hosts is None else self._hosts
        origin = headers.get("origin", f"http://{asked}").lower()
        if asked not in hosts:
            await _refuse(send, 400, "this server does not answer under that name")
        elif origin.partition("://")[2] not in hosts:
            await _refuse(send, 403, "no page of another site may ask this server")
        elif not self._admitted(headers.get("authorization", "")):
            await _refuse(send, 401, "give the token: Authorization: Bearer TOKEN")
        elif (body := await _read(headers, receive)) is None:
            await _refuse(send, 413, TOO_LARGE)
        else:
            await self._app(scope, _again(body, receive), send)

    def _admitted(self, given: str) -> bool:
        if self._token is None:
            return True
        told = given.removeprefix("Bearer ")
        return hmac.compare_digest(told.encode(), self._token.encode())


async def _read(headers: Mapping[str, str], receive: "Receive") -> bytes | None:
    """The body of a request; None where it has more than the largest. One in parts tells no length
    beforehand."""
    if int(headers.get("content-length") or 0) > LARGEST:
        return None
    body = bytearray()
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > LARGEST:
            return None
    return bytes(body)


def _again(body: bytes, receive: "Receive") -> "Receive":
    """What gives a body that has been read, and then what comes after it."""
    given = False

    async def next_message() -> "Message":
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return next_message


async def _refuse(send: "Send", status: int, text: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{text}\n".encode()})
