"""Who may ask the server, and what its pages may do.

- The `Host` header names this server: a page of another site cannot reach it under a name of its
  own (DNS rebinding). A server at all addresses (`0.0.0.0`, `::`) has names that it cannot know;
  its token, which such a page does not have, is enough.
- Beyond this computer a token is needed: in the address once, then in a cookie, or as
  `Authorization: Bearer`.
- A request that changes something comes from a page of this server: its `Origin` and
  `Sec-Fetch-Site` say so, and its form carries a token that no other site can read.
- Pages run this server's scripts only, and are shown in no other page.
"""

import hmac
import secrets
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlencode

from hopscope.runtime.types import digest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # without it, forms of our own pages have the origin null
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
COOKIE = "hopscope_token"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
CHANGING = ("POST", "PUT", "PATCH", "DELETE")
OWN_SITES = ("same-origin", "none")


def names(host: str, port: int) -> frozenset[str] | None:
    """The `Host` headers of a server at this address, in lower case; without a port, too, where it
    is 80. None for all addresses of this computer: any name may lead there."""
    try:
        address = ip_address(host)
    except ValueError:
        name, everywhere = host.lower(), host == ""
    else:
        bare = address.compressed.partition("%")[0]  # no header tells the interface
        name, everywhere = f"[{bare}]" if address.version == 6 else bare, address.is_unspecified
    if everywhere:
        return None
    own = {name, *LOOPBACK}
    return frozenset(f"{each}:{port}" for each in own) | (
        frozenset(own) if port == 80 else frozenset()
    )


class Guard:
    """ASGI middleware around the application."""

    def __init__(self, app: "ASGIApp", *, hosts: frozenset[str] | None, token: str | None) -> None:
        """
        Args:
            hosts: the `Host` headers that are answered; None for any, which needs a token.
            token: that every request must carry; None where only this computer can ask.
        """
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
        refused = self._refusal(scope, headers)
        if refused is not None:
            await _answer(send, *refused)
            return
        if self._token is not None and _asked(scope):
            await self._admit(scope, send)
            return

        async def guarded(message: "Message") -> None:
            if message["type"] == "http.response.start":
                known = {name for name, _ in message["headers"]}
                added = [
                    (name.encode(), value.encode())
                    for name, value in HEADERS.items()
                    if name.encode() not in known
                ]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        await self._app(scope, receive, guarded)

    def _refusal(self, scope: "Scope", headers: dict[str, str]) -> tuple[int, str] | None:
        asked = headers.get("host", "").lower()
        hosts = {asked} if self._hosts is None else self._hosts
        if asked not in hosts:
            return 400, "this server does not answer under that name"
        if self._token is not None and not self._admitted(scope, headers):
            return 401, "give the token that `hopscope view` printed: open the address it printed"
        if scope["method"] in CHANGING:
            origin = headers.get("origin")
            site = headers.get("sec-fetch-site", "same-origin")
            own = {f"http://{name}" for name in hosts}
            if site not in OWN_SITES or (origin is not None and origin.lower() not in own):
                return 403, "another site may not change anything here"
        return None

    def _admitted(self, scope: "Scope", headers: dict[str, str]) -> bool:
        given = [headers.get("authorization", "").removeprefix("Bearer "), _asked(scope)]
        given += _cookies(headers.get("cookie", ""))
        token = (self._token or "").encode()
        return any(hmac.compare_digest(each.encode(), token) for each in given)

    async def _admit(self, scope: "Scope", send: "Send") -> None:
        """Keep the token in a cookie, and lead to the same address without it."""
        query = parse_qs(scope["query_string"].decode("latin-1"))
        rest = urlencode({name: values for name, values in query.items() if name != "token"}, True)
        # One slash only: an address that begins with two names another host.
        place = "/" + quote(scope["path"].lstrip("/"))
        cookie = f"{COOKIE}={self._token}; Path=/; HttpOnly; SameSite=Strict"
        headers = [(b"location", (place + (f"?{rest}" if rest else "")).encode())]
        headers += [(b"set-cookie", cookie.encode())]
        await _answer(send, 303, "", headers)


class FormToken:
    """A token in each form, which another site cannot read and so cannot send."""

    def __init__(self) -> None:
        self._secret = secrets.token_hex(16)

    def of(self, run: str) -> str:
        """The token of a form about a run."""
        return digest(self._secret, run)

    def valid(self, run: str, token: str) -> bool:
        return hmac.compare_digest(self.of(run).encode(), token.encode())


def _cookies(header: str) -> list[str]:
    """The tokens in cookies. Others, which may have any form, are servers' of the same computer."""
    pairs = [each.strip().partition("=") for each in header.split(";")]
    return [value for name, _, value in pairs if name == COOKIE]


def _asked(scope: "Scope") -> str:
    """The token in the address."""
    query: dict[str, list[str]] = parse_qs(scope["query_string"].decode("latin-1"))
    return query.get("token", [""])[0]


async def _answer(
    send: "Send", status: int, text: str, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    every = [(b"content-type", b"text/plain; charset=utf-8"), *(headers or [])]
    every += [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    await send({"type": "http.response.start", "status": status, "headers": every})
    await send({"type": "http.response.body", "body": f"{text}\n".encode()})
