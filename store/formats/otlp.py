"""Traces in OTLP, as JSON or protobuf: those of Hopscope itself (`--trace-file`), and those of
other programs by OpenInference's or OpenTelemetry's gen_ai conventions.

A file is what the OpenTelemetry Collector's file exporter writes, a request to `/v1/traces`, or a
page of `/v1/projects/PROJECT/spans/otlpv1` of Phoenix.
"""

from collections.abc import Iterator

from hopscope.store.traces import otlp
from hopscope.store.traces.foreign import Reading
from hopscope.store.traces.reading import Traces, by_object
from hopscope.store.traces.span import Span
from hopscope.store.trajectories.sources import RunFormat, Source, Unread
from hopscope.store.trajectories.tools import SearchTools


def build(*, tools: str = "") -> RunFormat:
    """
    Args:
        tools: names of the tools that search, with spaces between; by default all do.
    """
    return Traces(_spans, _looks_so, Reading("otlp", SearchTools(tools.split())))


def _looks_so(source: Source) -> bool:
    if source.head:
        return any(map(otlp.looks_so, source.head))
    return otlp.is_protobuf(source)


def _spans(source: Source) -> Iterator[tuple[int, list[Span]] | Unread]:
    if source.head or not otlp.is_protobuf(source):
        return by_object(source, otlp.spans)
    return otlp.protobuf(source)
