"""Sends spans to an OTLP collector without disturbing the run.

Invariant: whatever the collector does, the exit takes at most `FLUSH_SECONDS` plus
`ABORT_SECONDS` and prints at most one line. (The SDK's own flush ignores its timeout, and its
exporters log every retry and failure with tracebacks.)
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from urllib.parse import urlsplit

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from hopscope.runtime.errors import MissingExtraError, UsageError

FLUSH_SECONDS = 5.0
ABORT_SECONDS = 1.0
BATCH = 32
"""Spans per request: prompts and passages make spans large, and collectors accept 4 MiB."""
_PREFIX = "OTEL_EXPORTER_OTLP_"
_LOGGERS = ("opentelemetry.exporter", "opentelemetry.sdk")


def _variable(name: str, signal: str = "TRACES") -> str:
    """The variable for a signal, else the one for all."""
    return os.environ.get(f"{_PREFIX}{signal}_{name}") or os.environ.get(f"{_PREFIX}{name}") or ""


def protocol(signal: str = "TRACES") -> str:
    """The protocol of the environment; else gRPC for port 4317, else HTTP, the standard's default.

    Raises:
        UsageError: the protocol is neither gRPC nor HTTP with protobuf.
    """
    stated = _variable("PROTOCOL", signal).strip().lower()
    if not stated:
        return "grpc" if ":4317" in _variable("ENDPOINT", signal) else "http/protobuf"
    if stated not in ("grpc", "http/protobuf"):
        raise UsageError(f"{_PREFIX}PROTOCOL={stated}: choose grpc or http/protobuf")
    return stated


def _exporter() -> SpanExporter:
    spoken = protocol()
    try:
        if spoken == "grpc":
            try:
                from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
                    OTLPSpanExporter as GrpcExporter,
                )
            except ImportError:
                other = f"set {_PREFIX}PROTOCOL=http/protobuf"
                raise MissingExtraError("spans by gRPC", "grpc", instead=other) from None
            return GrpcExporter()
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
            OTLPSpanExporter as HttpExporter,
        )

        return HttpExporter()
    except ValueError as error:
        raise UsageError(f"one of the {_PREFIX}* variables cannot be used: {error}") from None


class _Watched(SpanExporter):
    """Counts the spans that were not delivered."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self._under_way = 0
        self._lost = 0

    @property
    def complete(self) -> bool:
        return self._lost == self._under_way == 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._under_way += len(spans)
        result = self._inner.export(spans)
        self._under_way -= len(spans)
        if result is not SpanExportResult.SUCCESS:
            self._lost += len(spans)
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()


class _LastMessage(logging.Handler):
    """Keeps the SDK's latest error message instead of printing it."""

    message = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR or not self.message:
            self.message = " ".join(record.getMessage().split())[:300]


@contextmanager
def send_spans(provider: TracerProvider, warn: Callable[[str], None]) -> Iterator[None]:
    """Send every span that ends inside to the collector that the environment names.

    Raises:
        UsageError: the environment cannot be used.
        MissingExtraError: it wants gRPC, which is not installed.
    """
    exporter = _Watched(_exporter())
    try:
        own = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE" in os.environ
        processor = BatchSpanProcessor(exporter, max_export_batch_size=None if own else BATCH)
    except ValueError as error:
        raise UsageError(f"one of the OTEL_BSP_* variables cannot be used: {error}") from None
    complaints = _LastMessage()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(complaints)
        logger.propagate = False
    provider.add_span_processor(processor)
    try:
        yield
    finally:
        finished = _close(processor, exporter)
        if not (finished and exporter.complete):
            warn(_failure(complaints.message))
        if finished:  # else the sending thread may still log an error
            for logger, propagate in zip(loggers, before, strict=True):
                logger.removeHandler(complaints)
                logger.propagate = propagate


def _close(processor: BatchSpanProcessor, exporter: SpanExporter) -> bool:
    """Deliver the remaining spans within the time limits. True if sending has ended."""
    closing = Thread(target=processor.shutdown, name="hopscope-flush", daemon=True)
    closing.start()
    closing.join(FLUSH_SECONDS)
    if closing.is_alive():
        exporter.shutdown()  # ends the wait for the next retry
        closing.join(ABORT_SECONDS)
    return not closing.is_alive()


def _failure(complaint: str) -> str:
    """One line, without a login or password in the endpoint."""
    stated = _variable("ENDPOINT")
    login = urlsplit(stated).netloc.rpartition("@")[0] + "@"
    because = f" ({complaint})" if complaint else ""
    where = stated or "the default endpoint"
    message = f"not all spans could be sent to {where}: is a collector there?{because}"
    return message.replace(login, "") if len(login) > 1 else message
