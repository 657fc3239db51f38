"""Runs from the store as traces, as they would have been traced while they ran.

A run has one trace: its own span, one for each step, and below a step one RETRIEVER span for its
query and one LLM span for each request. A run that was traced keeps its trace and the spans of its
steps and requests; other ids are hashes of the run's id, so that the same run always has the same
trace. Not told, because runs do not hold it: spans of single stages of a retriever, and the k that
was asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from hopscope.runtime.spans import content, keys, records
from hopscope.runtime.types import Exchange, Run, Step, digest
from hopscope.store.traces.span import Event, Span

SCOPE = "hopscope"
_NANO = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Worth = Mapping[int, Mapping[str, Mapping[str, float]]]
"""Credits of passages by step, key and name."""


@dataclass(frozen=True)
class Trace:
    """The spans of a run."""

    run: Run
    id: str
    """32 hex digits."""
    root: str
    """The run's span, 16 hex digits."""
    steps: Mapping[int, str]
    """The span of each step."""
    retrievers: Mapping[int, str]
    """The RETRIEVER span of each step that retrieved; its documents are the step's `ranked`."""
    spans: Sequence[Span] = field(repr=False)


def trace(run: Run, *, worth: Worth | None = None, capture: bool = True) -> Trace:
    """The trace of a run.

    Args:
        worth: credits of passages, for the metadata of the retrievers' documents.
        capture: False leaves out questions, prompts, passages and answers.
    """
    id = run.trace_id or digest("trace", run.id)[:32]
    root = run.span_id or digest("run", run.id)[:16]
    steps = {each.index: each.span_id or _id("step", run, each.index) for each in run.steps}
    retrievers = {each.index: _id("retriever", run, each.index) for each in run.retrievals}
    failure = records.failure(run, capture=capture)
    start = _nanoseconds(run.started)
    name = content.text(run.workflow)
    spans = [
        Span(
            trace=id,
            id=root,
            parent="",
            name=f"{keys.INVOKE_WORKFLOW} {name}",
            start=start,
            end=start + round(run.seconds * _NANO),
            attributes={
                **records.begun(run.id, name, run.question, run.options, capture=capture),
                **records.ended(run, capture=capture),
            },
            failed=failure is not None,
            status=failure or "",
        )
    ]
    for step in run.steps:
        at = steps[step.index]
        spans.append(_step(step, id, at, root, capture=capture))
        if step.index in retrievers:
            known = (worth or {}).get(step.index, {})
            below = retrievers[step.index]
            spans.append(_retriever(run, step, id, below, at, known, capture=capture))
        begin = _nanoseconds(step.started)
        for place, exchange in enumerate(step.exchanges):
            end = begin + round(exchange.seconds * _NANO)
            below = exchange.span_id or _id("exchange", run, step.index, place)
            spans.append(_exchange(run, exchange, id, below, at, begin, end, capture=capture))
            begin = end
    return Trace(run, id, root, steps, retrievers, spans)


def relocated(made: Trace, retrievers: Mapping[int, str]) -> Trace:
    """The trace of a run as it was traced while it ran: its RETRIEVER spans have other ids.

    Args:
        retrievers: their ids, by step; steps without one have no such span.
    """
    ids = {made.retrievers[step]: id for step, id in retrievers.items() if step in made.retrievers}
    lost = {id for id in made.retrievers.values() if id not in ids}
    spans = [
        replace(span, id=ids.get(span.id, span.id)) for span in made.spans if span.id not in lost
    ]
    return replace(made, retrievers=dict(retrievers), spans=spans)


def protobuf(traces: Iterable[Trace], *, resource: Mapping[str, Any] | None = None) -> bytes:
    """An OTLP `ExportTraceServiceRequest`.

    Args:
        resource: attributes of the service that made the spans.
    """
    return encoded((span for each in traces for span in each.spans), resource=resource)


def encoded(spans: Iterable[Span], *, resource: Mapping[str, Any] | None = None) -> bytes:
    """Spans as an OTLP `ExportTraceServiceRequest`."""
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    data = TracesData()
    made = data.resource_spans.add()
    _fill(made.resource.attributes, {"service.name": SCOPE, **(resource or {})})
    scope = made.scope_spans.add()
    scope.scope.name = SCOPE
    for span in spans:
        _encode(scope.spans.add(), span)
    return bytes(data.SerializeToString())


def _step(step: Step, trace: str, id: str, root: str, *, capture: bool) -> Span:
    begin = _nanoseconds(step.started)
    events: tuple[Event, ...] = ()
    if step.decision is not None:
        events = (Event(keys.DECISION_EVENT, records.decided(step.decision)),)
    name = content.text(step.name)
    return Span(
        trace=trace,
        id=id,
        parent=root,
        name=name,
        start=begin,
        end=begin + round(step.seconds * _NANO),
        attributes={
            **records.identity(name, step.kind, step.index),
            **records.done(step, capture=capture),
        },
        events=events,
    )


def _retriever(
    run: Run,
    step: Step,
    trace: str,
    id: str,
    parent: str,
    worth: Mapping[str, Mapping[str, float]],
    *,
    capture: bool,
) -> Span:
    begin = _nanoseconds(step.started)
    read = sum(each.seconds for each in step.exchanges)
    asked = content.query(run.retriever, step.query or "", k=0, capture=capture)
    del asked[keys.RETRIEVAL_TOP_K]
    return Span(
        trace=trace,
        id=id,
        parent=parent,
        name=content.text(f"{keys.RETRIEVAL} {run.retriever}"),
        start=begin,
        end=begin + round(max(0.0, step.seconds - read) * _NANO),
        attributes={**asked, **content.ranking(step.ranked, capture=capture, worth=worth)},
    )


def _exchange(
    run: Run,
    exchange: Exchange,
    trace: str,
    id: str,
    parent: str,
    begin: int,
    end: int,
    *,
    capture: bool,
) -> Span:
    return Span(
        trace=trace,
        id=id,
        parent=parent,
        name=content.text(f"{keys.CHAT} {run.reader}"),
        start=begin,
        end=end,
        attributes={
            **content.request(run.reader, exchange.request, capture=capture),
            **content.reply(run.reader, exchange.generations, capture=capture),
        },
    )


def _id(kind: str, run: Run, *places: int) -> str:
    return digest(kind, run.id, *map(str, places))[:16]


def _nanoseconds(moment: datetime) -> int:
    since = moment - _EPOCH
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000


def _encode(made: Any, span: Span) -> None:
    made.trace_id, made.span_id = bytes.fromhex(span.trace), bytes.fromhex(span.id)
    made.parent_span_id = bytes.fromhex(span.parent)
    made.name = span.name
    made.kind = 3 if span.meaning in ("search", "reply") else 1  # client or internal
    made.start_time_unix_nano, made.end_time_unix_nano = span.start, span.end
    made.status.code = 2 if span.failed else 1
    made.status.message = span.status
    _fill(made.attributes, span.attributes)
    for event in span.events:
        told = made.events.add()
        told.name, told.time_unix_nano = event.name, span.end
        _fill(told.attributes, event.attributes)


def _fill(pairs: Any, attributes: Mapping[str, Any]) -> None:
    for key, value in attributes.items():
        pair = pairs.add()
        pair.key = key
        _value(pair.value, value)


def _value(made: Any, value: Any) -> None:
    match value:
        case bool():
            made.bool_value = value
        case str():
            made.string_value = value
        case int() if not -(2**63) <= value < 2**63:
            made.string_value = str(value)  # seeds have 64 bits without a sign
        case int():
            made.int_value = value
        case float():
            made.double_value = value
        case _:
            made.array_value.SetInParent()
            for item in value:
                _value(made.array_value.values.add(), item)
