"""Listening at an address, and serving there until a signal ends it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from hopscope.runtime.errors import MissingExtraError, UsageError
from hopscope.store.runs.browsing import RunQuery
from hopscope.store.store import Store
from hopscope.view.drawing import EXTRA
from hopscope.view.html import compiled
from hopscope.view.server.app import application
from hopscope.view.server.guarding import names

if TYPE_CHECKING:
    import uvicorn


class Place(NamedTuple):
    """An address that is listened at."""

    host: str
    port: int
    socket: socket.socket

    @property
    def name(self) -> str:
        """For an address of the browser."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@contextmanager
def listen(host: str, port: int) -> Iterator[Place]:
    """Listen at an address; port 0 takes any free one.

    Raises:
        UsageError: the address is taken, or not of this computer.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(
                f"cannot listen at {host}:{port}: {reason}; choose another --port or --host"
            ) from None
        listening.listen()
        yield Place(host, listening.getsockname()[1], listening)


def prepare(store: Store, place: Place, *, token: str | None, read_only: bool) -> "uvicorn.Server":
    """A server that answers at once when it is run: what the list needs is imported, compiled and
    read once. `run(sockets=[place.socket])` serves until SIGINT or SIGTERM.

    Raises:
        MissingExtraError: the extra `view` is not installed.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("the local view", EXTRA) from None
    server: uvicorn.Server

    def stopping() -> bool:  # streams would keep the server from its end
        return server.should_exit

    app = application(
        store,
        hosts=names(place.host, place.port),
        token=token,
        read_only=read_only,
        stopping=stopping,
    )
    settings = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    settings.load()
    store.page(RunQuery())
    store.experiments.all()
    compiled("index.html")
    server = uvicorn.Server(settings)
    return server
