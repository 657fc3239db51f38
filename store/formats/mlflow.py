"""Traces of MLflow as JSON, as `trace.to_json()` gives them: objects with `data.spans`. Their
attributes may be lists of pairs, too, as its API gives them.

Spans tell their kind, input and output as `mlflow.spanType`,
`mlflow.spanInputs` and `mlflow.spanOutputs`.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from hopscope.runtime.corpora.records.fields import objects
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.spans import keys
from hopscope.store.traces import otlp
from hopscope.store.traces.foreign import Reading
from hopscope.store.traces.reading import Traces, by_object
from hopscope.store.traces.span import Span
from hopscope.store.traces.values import loaded
from hopscope.store.trajectories.sources import RunFormat, Source
from hopscope.store.trajectories.tools import SearchTools

_KINDS = {
    "RETRIEVER": keys.RETRIEVER,
    "LLM": keys.LLM,
    "CHAT_MODEL": keys.LLM,
    "TOOL": "TOOL",
    "RERANKER": keys.RERANKER,
}


def build(*, tools: str = "") -> RunFormat:
    """
    Args:
        tools: names of the tools that search, with spaces between; by default all do.
    """
    reading = Reading("mlflow", SearchTools(tools.split()))
    return Traces(partial(by_object, read=_spans), _looks_so, reading)


def _looks_so(source: Source) -> bool:
    return any(
        isinstance(data := value.get("data"), Mapping) and isinstance(data.get("spans"), list)
        for value in source.head
    )


def _spans(value: Mapping[str, Any]) -> Iterator[Span]:
    data = value.get("data")
    if not isinstance(data, Mapping):
        raise MalformedRecordError("no object 'data': this is no trace of MLflow")
    for span in objects(data, "spans"):
        yield _span(span)


def _span(value: Mapping[str, Any]) -> Span:
    context = value.get("context")
    ids = context if isinstance(context, Mapping) else value  # the older form
    trace, id = (otlp.hexadecimal(ids.get(f"{n}_id"), n) for n in ("trace", "span"))
    if not trace or not id:
        raise MalformedRecordError("a span without trace_id or span_id")
    status = value.get("status")
    code = status.get("code") if isinstance(status, Mapping) else value.get("status_code")
    told = status.get("message") if isinstance(status, Mapping) else value.get("status_message")
    name = value.get("name")
    return Span(
        trace=trace,
        id=id,
        parent=otlp.hexadecimal(value.get("parent_span_id") or value.get("parent_id"), "parent"),
        name=name if isinstance(name, str) else "",
        start=otlp.nanoseconds(value.get("start_time_unix_nano") or value.get("start_time")),
        end=otlp.nanoseconds(value.get("end_time_unix_nano") or value.get("end_time")),
        attributes=_attributes(value.get("attributes")),
        failed=code in ("STATUS_CODE_ERROR", "ERROR"),
        status=str(told or ""),
    )


def _attributes(given: Any) -> dict[str, Any]:
    """The attributes in OpenInference's names."""
    given = otlp.attributes(given) if isinstance(given, list) else given
    if not isinstance(given, Mapping):
        return {}
    kind = given.get("mlflow.spanType")
    kind = loaded(kind) if isinstance(kind, str) else kind
    attributes = {key: value for key, value in given.items() if not key.startswith("mlflow.")}
    if isinstance(kind, str) and kind in _KINDS:
        attributes[keys.SPAN_KIND] = _KINDS[kind]
    for name, target in (
        ("mlflow.spanInputs", keys.INPUT_VALUE),
        ("mlflow.spanOutputs", keys.OUTPUT_VALUE),
    ):
        if (value := given.get(name)) is not None:
            attributes[target] = value if isinstance(value, str) else json.dumps(value)
    used = given.get("mlflow.chat.tokenUsage")
    used = loaded(used) if isinstance(used, str) else used
    if isinstance(used, Mapping):
        attributes[keys.USAGE_INPUT] = used.get("input_tokens")
        attributes[keys.USAGE_OUTPUT] = used.get("output_tokens")
    return attributes
