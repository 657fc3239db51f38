"""Real OTLP receivers on loopback, and spans in a form that tests read easily."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hopscope.tracing.spans.provider import installed


@dataclass
class Received:
    """What a collector got."""

    requests: list[Any] = field(default_factory=list)
    logs: list[Any] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    url: str = ""

    @property
    def spans(self) -> list[Any]:
        """Parents first."""
        found = [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return sorted(found, key=lambda span: (span.start_time_unix_nano, -span.end_time_unix_nano))

    @property
    def resource(self) -> dict[str, Any]:
        return attributes(self.requests[0].resource_spans[0].resource.attributes)

    @property
    def content(self) -> bytes:
        return b"".join(request.SerializeToString() for request in self.requests)


def attributes(pairs: Any) -> dict[str, Any]:
    """Protobuf key-values as a dictionary."""
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind)


@contextmanager
def grpc_receiver() -> Iterator[Received]:
    received = Received()

    class Service(TraceServiceServicer):  # type: ignore[misc]
        def Export(self, request: Any, context: Any) -> Any:
            received.requests.append(request)
            received.headers.update(dict(context.invocation_metadata()))
            return ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(Service(), server)
    received.url = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield received
    finally:
        server.stop(0).wait()


@contextmanager
def http_receiver(status: int = 200) -> Iterator[Received]:
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Type"] == "application/x-protobuf"
            if self.path == "/v1/logs":
                received.logs.append(ExportLogsServiceRequest.FromString(body))
            else:
                assert self.path == "/v1/traces"
                received.requests.append(ExportTraceServiceRequest.FromString(body))
            received.headers.update({k.lower(): v for k, v in self.headers.items()})
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Recorded:
    """The spans of this process, as they end."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()

    @property
    def spans(self) -> list[ReadableSpan]:
        """In the order they were started."""
        found = self.exporter.get_finished_spans()
        return sorted(found, key=lambda s: (s.start_time or 0, -(s.end_time or 0)))

    def named(self, name: str) -> ReadableSpan:
        [span] = [span for span in self.spans if span.name == name]
        return span

    @property
    def content(self) -> str:
        return "".join(span.to_json() for span in self.spans)


@contextmanager
def recorded() -> Iterator[Recorded]:
    """Record spans without any collector."""
    into = Recorded()
    with installed() as provider:
        provider.add_span_processor(SimpleSpanProcessor(into.exporter))
        yield into
