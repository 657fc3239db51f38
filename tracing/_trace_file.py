"""Spans as JSON lines that other tools read.

Each line is one span in an OTLP JSON `ExportTraceServiceRequest`, as the OpenTelemetry
Collector's file exporter writes them and its otlpjsonfile receiver reads them: camelCase names,
identifiers in hex, times as strings, enumerations as numbers. A line is written by one call
in append mode as soon as its span ends, so processes can share a file and a killed run keeps
what it had; a last line that an earlier process left half-written is ended first.
"""

import json
import os
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.util.types import AttributeValue

from hopscope.runtime.errors import UsageError

_IDENTIFIERS = ("traceId", "spanId", "parentSpanId")


@contextmanager
def append_spans(
    provider: TracerProvider, path: Path, warn: Callable[[str], None]
) -> Iterator[None]:
    """Append every span that ends inside to the file.

    Raises:
        UsageError: the file cannot be written.
    """
    exporter = TraceFile(path, warn)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    try:
        yield
    finally:
        exporter.shutdown()


class TraceFile(SpanExporter):
    """Appends spans to a file. Once closed, or when the disk fails, it drops them."""

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        self._path = path
        self._warn = warn
        try:
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise UsageError(f"cannot write the trace file {path}: {error.strerror}") from None
        if not _ends_a_line(self._file):
            os.write(self._file, b"\n")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        for span in spans:
            if self._file is None:
                return SpanExportResult.FAILURE
            data = line(span).encode()
            try:
                problem = "" if os.write(self._file, data) == len(data) else "no space left"
            except OSError as error:
                problem = error.strerror or str(error)
            if problem:
                self._warn(f"the trace file {self._path} is incomplete: {problem}")
                self.shutdown()
                return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _ends_a_line(file: int) -> bool:
    """A pipe or a terminal, which has no size, counts as such."""
    size = os.fstat(file).st_size
    return size == 0 or os.pread(file, 1, size - 1) == b"\n"


def line(span: ReadableSpan) -> str:
    """The span as an OTLP JSON request, ended by a newline."""
    request = _hex_identifiers(
        MessageToDict(encode_spans([_without_attributes(span)]), use_integers_for_enums=True)
    )
    told = request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    if span.attributes:
        told["attributes"] = [_attribute(*item) for item in span.attributes.items()]
    if span.dropped_attributes:
        told["droppedAttributesCount"] = span.dropped_attributes
    return json.dumps(request, ensure_ascii=False, separators=(",", ":")) + "\n"


def _without_attributes(span: ReadableSpan) -> ReadableSpan:
    """The rest of a span. A span of ours can have hundreds of attributes, and the way through
    protobuf takes most of the time that tracing does."""
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        events=span.events,
        links=span.links,
        kind=span.kind,
        status=span.status,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _attribute(key: str, value: AttributeValue) -> dict[str, Any]:
    return {"key": key, "value": _value(value)}


def _value(value: Any) -> dict[str, Any]:
    """A value of OTLP JSON, in which integers are texts."""
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"arrayValue": {"values": [_value(item) for item in value]} if value else {}}


def _hex_identifiers(value: Any) -> Any:
    """Protobuf's own JSON has them in base64; OTLP JSON wants hex."""
    if isinstance(value, list):
        return [_hex_identifiers(item) for item in value]
    if isinstance(value, dict):
        return {
            key: b64decode(item).hex() if key in _IDENTIFIERS else _hex_identifiers(item)
            for key, item in value.items()
        }
    return value
