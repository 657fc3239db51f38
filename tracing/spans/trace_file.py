"""Spans as JSON lines that other tools read.

Each line is one span in an OTLP JSON `ExportTraceServiceRequest`, as the OpenTelemetry
Collector's file exporter writes them and its otlpjsonfile receiver reads them: camelCase names,
identifiers in hex, times as strings, enumerations as numbers. One call in append mode writes each
line as soon as its span ends, so processes can share a file and a killed run keeps its finished
spans. A half-written last line of an earlier process is ended first.
"""

import os
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Link, SpanContext, format_span_id, format_trace_id
from pydantic_core import to_json

from hopscope.runtime.errors import UsageError

Told = dict[str, Any]
"""A JSON object."""


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
    """Appends spans to a file. After its end or a disk failure it drops them."""

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        self._path = path
        self._warn = warn
        try:
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise UsageError(
                f"cannot write the trace file {path}: {error.strerror}; name a file in a folder "
                "that exists and that you may write to"
            ) from None
        if not _ends_a_line(self._file):
            os.write(self._file, b"\n")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        for span in spans:
            if self._file is None:
                return SpanExportResult.FAILURE
            data = line(span)
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
    """Whether the file ends with a newline; also True for a pipe or terminal, which has no size."""
    size = os.fstat(file).st_size
    return size == 0 or os.pread(file, 1, size - 1) == b"\n"


def line(span: ReadableSpan) -> bytes:
    """The span as an OTLP JSON request, ended by a newline.

    It avoids the library's protobuf messages, which take several times as long; a test compares
    both.
    """
    scope, resource = span.instrumentation_scope, span.resource
    told_scope: Told = {"spans": [_span(span)]}
    if scope is not None:
        told_scope["scope"] = _present(
            name=scope.name, version=scope.version, attributes=_attributes(scope.attributes)
        )
        told_scope |= _present(schemaUrl=scope.schema_url)
    told_resource: Told = {
        "resource": _present(attributes=_attributes(resource.attributes)),
        "scopeSpans": [told_scope],
        **_present(schemaUrl=resource.schema_url),
    }
    request = {"resourceSpans": [told_resource]}
    return to_json(request, inf_nan_mode="strings") + b"\n"


def _span(span: ReadableSpan) -> Told:
    context = span.get_span_context()
    assert context is not None
    return {
        **_identity(context),
        "name": span.name,
        "kind": span.kind.value + 1,  # 0 means unspecified
        "status": _present(code=span.status.status_code.value, message=span.status.description),
        "flags": _flags(span.parent),
        **_present(
            traceState=",".join(f"{key}={value}" for key, value in context.trace_state.items()),
            parentSpanId=span.parent and format_span_id(span.parent.span_id),
            startTimeUnixNano=span.start_time and str(span.start_time),
            endTimeUnixNano=span.end_time and str(span.end_time),
            attributes=_attributes(span.attributes),
            droppedAttributesCount=span.dropped_attributes,
            events=[_event(event) for event in span.events],
            droppedEventsCount=span.dropped_events,
            links=[_link(link) for link in span.links],
            droppedLinksCount=span.dropped_links,
        ),
    }


def _event(event: Event) -> Told:
    return _present(
        name=event.name,
        timeUnixNano=str(event.timestamp),
        attributes=_attributes(event.attributes),
        droppedAttributesCount=event.dropped_attributes,
    )


def _link(link: Link) -> Told:
    return {
        **_identity(link.context),
        "flags": _flags(link.context),
        **_present(
            attributes=_attributes(link.attributes),
            droppedAttributesCount=link.dropped_attributes,
        ),
    }


def _identity(context: SpanContext) -> Told:
    return {
        "traceId": format_trace_id(context.trace_id),
        "spanId": format_span_id(context.span_id),
    }


def _flags(context: SpanContext | None) -> int:
    """OTLP's flags: whether another process began the span, and that this is known."""
    return 0x300 if context is not None and context.is_remote else 0x100


def _present(**fields: Any) -> Told:
    """The fields without empty and 0 values, which OTLP leaves out."""
    return {name: value for name, value in fields.items() if value}


def _attributes(attributes: Mapping[str, Any] | None) -> list[Told]:
    return [{"key": key, "value": _value(value)} for key, value in (attributes or {}).items()]


def _value(value: Any) -> Told:
    """A value as OTLP JSON: integers as texts, bytes as base64."""
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if value is None:
        return {}
    if isinstance(value, bytes):
        return {"bytesValue": b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {"kvlistValue": _present(values=_attributes(value))}
    return {"arrayValue": _present(values=[_value(item) for item in value])}
