"""A line of the trace file: what OpenTelemetry's own encoder makes of a span."""

import json
import math
from base64 import b64decode
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)
from opentelemetry.util.types import AttributeValue

from hopscope.tracing.spans.trace_file import line

VALUES: list[AttributeValue] = [
    "", "a\u2028\u00fc\n", True, False, 0, -3, 2**53, 0.0, 2.5, ["a", ""], [1, 0], [0.5], [True],
    [], math.nan, [math.inf, -math.inf], b"", b"\xff\x00", None, ["a", None], {},
    {"a": 1, "b": {"c": [b"d", {"e": 0.5}]}},
]  # fmt: skip


def by_the_library(span: ReadableSpan) -> Any:
    message = MessageToDict(encode_spans([span]), use_integers_for_enums=True)
    return json.loads(json.dumps(hexadecimal(message)))


def hexadecimal(value: Any) -> Any:
    """Protobuf's own JSON has identifiers in base64; OTLP JSON wants hex."""
    if isinstance(value, list):
        return [hexadecimal(item) for item in value]
    if isinstance(value, dict):
        return {
            key: b64decode(item).hex()
            if key in ("traceId", "spanId", "parentSpanId")
            else hexadecimal(item)
            for key, item in value.items()
        }
    return value


def provider(limit: int) -> TracerProvider:
    return TracerProvider(
        resource=Resource({"service.name": "hopscope"}, schema_url="https://a.example/1"),
        span_limits=SpanLimits(
            max_attributes=limit, max_events=limit, max_links=limit, max_event_attributes=limit
        ),
    )


def spans(attributes: dict[str, AttributeValue], *, limit: int = 1000) -> list[Any]:
    """A parent with an event, its failed child with the attributes, and one that another process
    began, with links."""
    tracer = provider(limit).get_tracer(
        "hopscope", "1", schema_url="https://b.example/2", attributes={"part": "workflow"}
    )
    with tracer.start_as_current_span("run", kind=SpanKind.CLIENT) as parent:
        for number in range(5):
            parent.add_event("decision", {"gain": 0.5, "retrieve": True, "a": 1, "b": number})
        parent.add_event("alone")
        with tracer.start_as_current_span("step") as child:
            child.set_attributes(attributes)
            child.set_status(Status(StatusCode.ERROR, "failed"))
    away = SpanContext(
        2**127 + 1, 5, True, TraceFlags(TraceFlags.SAMPLED), TraceState([("a", "b"), ("c", "d")])
    )
    links = [Link(away, {"why": number}) for number in range(5)]
    with tracer.start_as_current_span(
        "remote", set_span_in_context(NonRecordingSpan(away)), links=links
    ) as remote:
        remote.set_status(Status(StatusCode.OK))
    return [parent, child, remote]


@pytest.mark.parametrize("limit", [1000, 3])
def test_a_line_is_what_the_library_would_write(limit: int) -> None:
    attributes = {f"key.{number}": value for number, value in enumerate(VALUES)}
    for span in spans(attributes, limit=limit):
        assert json.loads(line(span)) == by_the_library(span)
        assert line(span).count(b"\n") == 1


def test_a_span_of_a_bare_tracer_is_what_the_library_would_write() -> None:
    with TracerProvider(resource=Resource({})).get_tracer("hopscope").start_span("x") as span:
        pass
    assert isinstance(span, ReadableSpan)
    assert json.loads(line(span)) == by_the_library(span)
