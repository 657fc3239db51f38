"""A line of the trace file: what OpenTelemetry's own encoder makes of a span."""

import json
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.trace import Status, StatusCode
from opentelemetry.util.types import AttributeValue

from hopscope.tracing._trace_file import _hex_identifiers, line

VALUES: list[AttributeValue] = [
    "", "a\u2028\u00fc\n", True, False, 0, -3, 2**53, 0.0, 2.5, ["a", ""], [1, 0], [0.5], [True],
    [],
]  # fmt: skip


def by_the_library(span: ReadableSpan) -> Any:
    message = MessageToDict(encode_spans([span]), use_integers_for_enums=True)
    return _hex_identifiers(message)


def spans(attributes: dict[str, AttributeValue], *, limit: int = 1000) -> list[Any]:
    """A parent with an event, and its failed child with the attributes."""
    provider = TracerProvider(
        resource=Resource({"service.name": "hopscope"}),
        span_limits=SpanLimits(max_attributes=limit),
    )
    tracer = provider.get_tracer("hopscope", "1")
    with tracer.start_as_current_span("run") as parent:
        parent.add_event("decision", {"gain": 0.5, "retrieve": True})
        with tracer.start_as_current_span("step") as child:
            child.set_attributes(attributes)
            child.set_status(Status(StatusCode.ERROR, "failed"))
    return [parent, child]


@pytest.mark.parametrize("limit", [1000, 3])
def test_a_line_is_what_the_library_would_write(limit: int) -> None:
    """Attributes are written without it, because that takes a quarter of the time."""
    attributes = {f"key.{number}": value for number, value in enumerate(VALUES)}
    for span in spans(attributes, limit=limit):
        assert json.loads(line(span)) == json.loads(json.dumps(by_the_library(span)))
        assert line(span).count("\n") == 1
