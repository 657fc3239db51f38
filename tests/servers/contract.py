"""Small servers on loopback that stand in for a service, and refuse what its schema refuses."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes

    def json(self) -> Any:
        """The body.

        Raises:
            Refusal: it is no JSON.
        """
        try:
            return json.loads(self.body)
        except ValueError:
            raise Refusal(400, "the body is no JSON") from None


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


Answer = tuple[int, Any]
"""Status and JSON."""


@contextmanager
def serving(answer: Callable[[Asked], Answer]) -> Iterator[str]:
    """The address of a server that answers like this."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            parts = urlsplit(self.path)
            asked = Asked(
                method=self.command,
                path=parts.path,
                query={name: values[-1] for name, values in parse_qs(parts.query).items()},
                headers={name.lower(): value for name, value in self.headers.items()},
                body=self.rfile.read(int(self.headers.get("content-length") or 0)),
            )
            try:
                status, told = answer(asked)
            except Refusal as refusal:
                status, told = refusal.status, {"message": str(refusal)}
            data = b"" if told is None else json.dumps(told).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = handle_any

        def log_message(self, format: str, *args: Any) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def spans(body: bytes) -> list[dict[str, Any]]:
    """The spans of an OTLP request in protobuf: ids in hex, name, attributes.

    Raises:
        Refusal: it is none.
    """
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    data = TracesData()
    try:
        data.ParseFromString(body)
    except DecodeError:
        raise Refusal(400, "no OTLP protobuf") from None
    return [
        {
            "trace": span.trace_id.hex(),
            "id": span.span_id.hex(),
            "parent": span.parent_span_id.hex(),
            "name": span.name,
            "attributes": {pair.key: _value(pair.value) for pair in span.attributes},
        }
        for resource in data.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)
