"""Spans of OTLP: JSON as OpenTelemetry writes it, with names in camel or snake case, or protobuf.

A JSON object is an `ExportTraceServiceRequest` (`resourceSpans`), a page of a Phoenix project
(`data`) or one span. A protobuf file holds one request, or several, each behind its length as four
bytes or as a varint.
"""

import gzip
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from itertools import count
from typing import Any, BinaryIO, cast

from hopscope.runtime.corpora.records.json_records import GZIP_MAGIC, LONGEST
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.errors import CorpusError
from hopscope.store.traces.span import Event, Span
from hopscope.store.trajectories.sources import Source

_NESTED = 20
"""Depth of lists and objects in a value."""


def spans(value: Mapping[str, Any]) -> Iterator[Span]:
    """The spans of a JSON object.

    Raises:
        MalformedRecordError: it holds none, or a broken one.
    """
    if (resources := _either(value, "resourceSpans", "resource_spans")) is not None:
        for resource in _objects(resources, "resourceSpans"):
            scopes = _either(resource, "scopeSpans", "scope_spans") or []
            for scope in _objects(scopes, "scopeSpans"):
                for span in _objects(scope.get("spans") or [], "spans"):
                    yield _span(span)
    elif isinstance(value.get("data"), list):
        for span in _objects(value["data"], "data"):
            yield _span(span)
    else:
        yield _span(value)


def looks_so(value: Mapping[str, Any]) -> bool:
    """Whether a JSON object is one of these."""
    listed = value.get("data")
    first = listed[0] if isinstance(listed, list) and listed else value
    return _either(value, "resourceSpans", "resource_spans") is not None or (
        isinstance(first, Mapping)
        and _either(first, "traceId", "trace_id") is not None
        and _either(first, "startTimeUnixNano", "start_time_unix_nano") is not None
        and not isinstance(first.get("attributes"), Mapping)
    )


def is_protobuf(source: Source) -> bool:
    """Whether a file begins as such a protobuf file does, and can be read so."""
    try:
        return next(protobuf(source), None) is not None
    except (CorpusError, MalformedRecordError):
        return False


def protobuf(source: Source) -> Iterator[tuple[int, list[Span]]]:
    """The spans of each message of a protobuf file, with its number.

    Raises:
        CorpusError: the file is damaged; the message tells where.
    """
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        with (
            source.path.open("rb") as file,
            gzip.open(file)
            if _zipped(file)
            else nullcontext(file) as opened,  # the file is closed by the first of both
        ):
            stream = cast(BinaryIO, opened)
            begin = stream.read(1)
            size = {b"\n": _field, b"\0": _four_bytes}.get(begin, _varint)
            for number in count(1):
                length = size(stream, begin)
                if length is None:
                    return
                data = _exactly(stream, length)
                try:
                    found = _resource(data) if size is _field else _request(data)
                except DecodeError:
                    raise CorpusError(
                        f"{source.name}, message {number}: no OTLP protobuf"
                    ) from None
                yield number, found
                begin = stream.read(1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorpusError(f"{source.name} is damaged: {error}") from None


def _zipped(file: BinaryIO) -> bool:
    zipped = file.read(2) == GZIP_MAGIC
    file.seek(0)
    return zipped


def _field(stream: BinaryIO, begin: bytes) -> int | None:
    """The length of the next resource's spans, a field of one request."""
    if not begin:
        return None
    if begin != b"\n":
        raise EOFError("it ends in something else than OTLP")
    return _varint(stream, stream.read(1))


def _four_bytes(stream: BinaryIO, begin: bytes) -> int | None:
    return int.from_bytes(begin + _exactly(stream, 3), "big") if begin else None


def _varint(stream: BinaryIO, begin: bytes) -> int | None:
    if not begin:
        return None
    number = 0
    for place in range(5):
        number |= (begin[0] & 0x7F) << (7 * place)
        if begin[0] < 0x80:
            return number
        begin = _exactly(stream, 1)
    raise EOFError("no length where one is due")


def _exactly(stream: BinaryIO, length: int) -> bytes:
    if length > LONGEST:
        raise EOFError(f"a message of more than {LONGEST >> 20} MiB")
    data = stream.read(length)
    if len(data) < length:
        raise EOFError("it ends within a message")
    return data


def _request(data: bytes) -> list[Span]:
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    return [
        _decoded(span)
        for resource in TracesData.FromString(data).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _resource(data: bytes) -> list[Span]:
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

    scopes = ResourceSpans.FromString(data).scope_spans
    return [_decoded(span) for scope in scopes for span in scope.spans]


def _decoded(span: Any) -> Span:
    return Span(
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        name=span.name,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        attributes={pair.key: _message(pair.value) for pair in span.attributes},
        failed=span.status.code == 2,
        status=span.status.message,
        events=tuple(
            Event(event.name, {pair.key: _message(pair.value) for pair in event.attributes})
            for event in span.events
        ),
    )


def _message(value: Any, depth: int = 0) -> Any:
    kind = value.WhichOneof("value")
    if kind is None or depth > _NESTED:
        return None
    content = getattr(value, kind)
    if kind == "array_value":
        return [_message(each, depth + 1) for each in content.values]
    if kind == "kvlist_value":
        return {pair.key: _message(pair.value, depth + 1) for pair in content.values}
    return b64encode(content).decode() if kind == "bytes_value" else content


def _span(value: Mapping[str, Any]) -> Span:
    trace, id = (hexadecimal(_either(value, f"{n}Id", f"{n}_id"), n) for n in ("trace", "span"))
    if not trace or not id:
        raise MalformedRecordError("a span without traceId or spanId")
    status = value.get("status")
    status = status if isinstance(status, Mapping) else {}
    name = value.get("name")
    return Span(
        trace=trace,
        id=id,
        parent=hexadecimal(_either(value, "parentSpanId", "parent_span_id"), "parent"),
        name=name if isinstance(name, str) else "",
        start=nanoseconds(_either(value, "startTimeUnixNano", "start_time_unix_nano")),
        end=nanoseconds(_either(value, "endTimeUnixNano", "end_time_unix_nano")),
        attributes=attributes(value.get("attributes")),
        failed=status.get("code") in (2, "2", "ERROR", "STATUS_CODE_ERROR"),
        status=str(status.get("message") or ""),
        events=tuple(
            Event(str(event.get("name")), attributes(event.get("attributes")))
            for event in _objects(value.get("events") or [], "events")
        ),
    )


def attributes(listed: Any) -> dict[str, Any]:
    """Attributes from their list of pairs in JSON.

    Raises:
        MalformedRecordError: it is no such list.
    """
    return {
        str(pair.get("key")): _value(pair.get("value"))
        for pair in _objects(listed or [], "attributes")
    }


_READ: Mapping[str, Callable[[Any], Any]] = {
    "string": lambda content: content,
    "bool": lambda content: content,
    "int": int,
    "double": float,
    "bytes": lambda content: content,
}


def _value(value: Any, depth: int = 0) -> Any:
    if not isinstance(value, Mapping) or depth > _NESTED:
        return None
    for kind, read in _READ.items():
        content = _either(value, f"{kind}Value", f"{kind}_value")
        if content is not None:
            try:
                return read(content)
            except (TypeError, ValueError, OverflowError):
                raise MalformedRecordError(f"{content!r} is no {kind}") from None
    if (array := _either(value, "arrayValue", "array_value")) is not None:
        listed = array.get("values") if isinstance(array, Mapping) else None
        return [_value(each, depth + 1) for each in listed] if isinstance(listed, list) else []
    if (pairs := _either(value, "kvlistValue", "kvlist_value")) is not None:
        listed = pairs.get("values") if isinstance(pairs, Mapping) else None
        return {
            str(pair.get("key")): _value(pair.get("value"), depth + 1)
            for pair in _objects(listed or [], "values")
        }
    return None


def _either(value: Mapping[str, Any], one: str, other: str) -> Any:
    found = value.get(one)
    return value.get(other) if found is None else found


def _objects(listed: Any, name: str) -> list[Mapping[str, Any]]:
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise MalformedRecordError(f"{name!r} must be a list of objects")
    return listed


def hexadecimal(given: Any, name: str) -> str:
    """An id in hex; protobuf's own JSON has it in base64. One of zeros is none."""
    if given in (None, ""):
        return ""
    if not isinstance(given, str):
        raise MalformedRecordError(f"the {name} id of a span must be a text")
    given = given.removeprefix("0x").removeprefix("tr-")
    try:
        data = bytes.fromhex(given)
    except ValueError:
        try:
            data = b64decode(given, validate=True)
        except ValueError:
            raise MalformedRecordError(f"the {name} id {given[:40]!r} is not hex") from None
    return data.hex() if any(data) else ""


def nanoseconds(given: Any) -> int:
    """A time of a span; 0 where none is told.

    Raises:
        MalformedRecordError: it is no such time.
    """
    try:
        told = int(given or 0)
    except (TypeError, ValueError, OverflowError):
        told = -1
    if not 0 <= told < 1 << 63:
        raise MalformedRecordError(f"{str(given)[:40]!r} is no time in nanoseconds")
    return told
