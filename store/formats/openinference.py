"""Spans by OpenInference's conventions as JSON objects: as OpenTelemetry's SDK prints them
(`span.to_json()`, its console exporter), or as Phoenix's client returns them.

    {"name": ..., "context": {"trace_id": ..., "span_id": ...}, "parent_id": ...,
     "start_time": ..., "end_time": ..., "attributes": {...}}

Attributes may be flat or nested.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.spans import keys
from hopscope.store.traces import otlp
from hopscope.store.traces.foreign import Reading
from hopscope.store.traces.reading import Traces, by_object
from hopscope.store.traces.span import Event, Span
from hopscope.store.trajectories.sources import RunFormat, Source
from hopscope.store.trajectories.tools import SearchTools


def build(*, tools: str = "") -> RunFormat:
    """
    Args:
        tools: names of the tools that search, with spaces between; by default all do.
    """
    reading = Reading("openinference", SearchTools(tools.split()))
    return Traces(partial(by_object, read=_spans), _looks_so, reading)


def _looks_so(source: Source) -> bool:
    return any(
        isinstance(context := value.get("context"), Mapping)
        and "span_id" in context
        and isinstance(value.get("attributes"), Mapping)
        for value in source.head
    )


def _spans(value: Mapping[str, Any]) -> Iterator[Span]:
    context = value.get("context")
    if not isinstance(context, Mapping):
        raise MalformedRecordError("no object 'context': this is no span")
    trace, id = (otlp.hexadecimal(context.get(f"{n}_id"), n) for n in ("trace", "span"))
    if not trace or not id:
        raise MalformedRecordError("a span without trace_id or span_id")
    attributes = flat(value.get("attributes") or {})
    if isinstance(kind := value.get("span_kind"), str):
        attributes.setdefault(keys.SPAN_KIND, kind)
    status, events = value.get("status"), value.get("events")
    told = status if isinstance(status, Mapping) else value
    name = value.get("name")
    yield Span(
        trace=trace,
        id=id,
        parent=otlp.hexadecimal(value.get("parent_id"), "parent"),
        name=name if isinstance(name, str) else "",
        start=_nanoseconds(value.get("start_time")),
        end=_nanoseconds(value.get("end_time")),
        attributes=attributes,
        failed=told.get("status_code") == "ERROR",
        status=str(told.get("description") or told.get("status_message") or ""),
        events=tuple(
            Event(str(event.get("name")), flat(event.get("attributes") or {}))
            for event in (events if isinstance(events, list) else [])
            if isinstance(event, Mapping)
        ),
    )


def flat(value: Any, prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Nested attributes with their names joined by dots."""
    if depth > 20 or not isinstance(value, Mapping | list):
        return {prefix: value}
    if isinstance(value, list) and not any(isinstance(each, Mapping) for each in value):
        return {prefix: value}
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
    found: dict[str, Any] = {}
    for key, each in pairs:
        name = f"{prefix}.{key}" if prefix else str(key)
        if name.endswith(keys.DOCUMENT_METADATA):
            found[name] = each
        else:
            found |= flat(each, name, depth + 1)
    return found


def _nanoseconds(given: Any) -> int:
    """Nanoseconds since 1970 of a time as ISO 8601; 0 where none is told."""
    if given is None:
        return 0
    try:
        told = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        raise MalformedRecordError(f"{str(given)[:40]!r} is no time") from None
    aware = told if told.tzinfo else told.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
