"""Haystack's tracer, as recorded calls.

    with hopscope.record_haystack("runs.db") as recorded:
        pipeline.run({...})
    print(recorded.stored)

The recording reads contents, whether or not `HAYSTACK_CONTENT_TRACING_ENABLED` allows other tracers
to do so. A component that returns documents searches, unless it was given documents: then it ranks
them.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

from hopscope.api.recording import attributes, replies
from hopscope.api.recording.frameworks.calls import Calls
from hopscope.api.recording.keeping import recorded
from hopscope.runtime.errors import MissingExtraError
from hopscope.runtime.spans import keys

try:
    from haystack import Document, tracing
    from haystack.dataclasses import ChatMessage
except ImportError:
    raise MissingExtraError("recording of Haystack", "haystack") from None

QUERIES = ("query", "text", "question", "query_embedding", "messages")
"""Inputs of a component that searches; the first present one is its query."""


class Recorded(Calls):
    """The recorded runs of Haystack; `close` ends the recording."""

    def begin_listening(self) -> None:
        """Trace from now on."""
        self._before = tracing.tracer.actual_tracer
        tracing.enable_tracing(_Tracer(self))

    def close(self) -> None:
        """Give Haystack its tracer back, and close the store, unless it was given open."""
        tracing.enable_tracing(self._before)
        super().close()


class _Span(tracing.Span):  # type: ignore[misc]  # Haystack need not be there
    def __init__(self, id: str) -> None:
        self.id = id
        self.tags: dict[str, Any] = {}

    def set_tag(self, key: str, value: Any) -> None:
        self.tags[key] = value

    def set_content_tag(self, key: str, value: Any) -> None:
        self.tags[key] = value


class _Tracer(tracing.Tracer):  # type: ignore[misc]  # as above
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._current: ContextVar[_Span | None] = ContextVar("haystack_span", default=None)

    def current_span(self) -> _Span | None:
        return self._current.get()

    @contextmanager
    def trace(
        self,
        operation_name: str,
        tags: dict[str, Any] | None = None,
        parent_span: _Span | None = None,
    ) -> Iterator[_Span]:
        parent = parent_span or self._current.get()
        span = _Span(uuid4().hex)
        span.set_tags(tags or {})
        name = str(span.tags.get("haystack.component.name") or span.tags.get("haystack.tool.name"))
        named = operation_name if name == "None" else name
        self._calls.begin(span.id, parent and parent.id, named, {})
        token = self._current.set(span)
        try:
            yield span
        except BaseException as error:
            self._calls.end(span.id, _told(operation_name, span.tags), error)
            raise
        finally:
            self._current.reset(token)
        self._calls.end(span.id, _told(operation_name, span.tags))


def _told(operation: str, tags: Mapping[str, Any]) -> dict[str, Any]:
    """What a span tells; nothing, with a warning, if its values cannot be read."""
    return recorded(operation, lambda: _read(operation, tags), {})


def _read(operation: str, tags: Mapping[str, Any]) -> dict[str, Any]:
    """What a span tells of a search, a reply, a call of a tool, or a whole pipeline."""
    match operation:
        case "haystack.component.run":
            given = tags.get("haystack.component.input") or {}
            return _component(given, tags.get("haystack.component.output") or {})
        case "haystack.agent.step.llm":
            given = tags.get("haystack.agent.step.llm.input") or {}
            return _reply(given, tags.get("haystack.agent.step.llm.output") or {})
        case "haystack.agent.step.tool":
            arguments = tags.get("haystack.agent.step.tool.input") or {}
            output = tags.get("haystack.agent.step.tool.output")
            called = attributes.called(str(tags.get("haystack.tool.name")), arguments)
            if isinstance(output, Mapping) and _documents(output.get("documents")):
                return {**called, **_found(output["documents"])}
            return {**called, **attributes.returned(replies.text(_plain(output)))}
        case "haystack.pipeline.run":
            given = tags.get("haystack.pipeline.input_data")
            output = tags.get("haystack.pipeline.output_data")
        case "haystack.agent.run":
            given, output = tags.get("haystack.agent.input"), tags.get("haystack.agent.output")
        case _:
            return {}
    return {
        keys.INPUT_VALUE: replies.text(_plain(given)),
        keys.OUTPUT_VALUE: replies.text(_plain(_answering(output))),
    }


def _component(given: Mapping[str, Any], output: Mapping[str, Any]) -> dict[str, Any]:
    documents = output.get("documents")
    if "replies" in output:
        return _reply(given, output)
    if not _documents(documents):
        return {}
    if _documents(given.get("documents")):
        return {**_found(documents), keys.SPAN_KIND: keys.RERANKER}
    query = next((given[name] for name in QUERIES if given.get(name) is not None), "")
    return {**attributes.search(replies.text(_plain(query))), **_found(documents)}


def _reply(given: Mapping[str, Any], output: Mapping[str, Any]) -> dict[str, Any]:
    prompt = given.get("messages") or given.get("prompt") or ""
    said = next(iter(output.get("replies") or ()), "")
    about = output.get("meta")
    meta = said.meta if isinstance(said, ChatMessage) else next(iter(about or ()), {})
    counted = replies.read({**meta, "text": ""})
    calls = said.tool_calls if isinstance(said, ChatMessage) else ()
    told = [f"{call.tool_name}({replies.text(call.arguments)})" for call in calls]
    text = "\n".join(filter(None, [_spoken(said), *told]))
    asked = attributes.asked(_prompt(prompt))
    return {**asked, **attributes.replied(counted._replace(text=text))}


def _found(documents: Any) -> dict[str, Any]:
    told = [
        {
            "id": each.id,
            "text": each.content or "",
            **({"title": each.meta["title"]} if isinstance(each.meta.get("title"), str) else {}),
            **({} if each.score is None else {"score": each.score}),
        }
        for each in documents
    ]
    return attributes.found(attributes.passages(told))


def _documents(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, Document) for each in value)


def _prompt(value: Any) -> str:
    return value if isinstance(value, str) else "\n".join(map(_spoken, value))


def _spoken(message: Any) -> str:
    """The text of a message, or of a tool's result in it."""
    if not isinstance(message, ChatMessage):
        return str(message)
    results = [replies.text(_plain(each.result)) for each in message.tool_call_results]
    return "\n".join(filter(None, [message.text or "", *results]))


def _answering(output: Any) -> Any:
    """The part of a pipeline's or an agent's output that answers."""
    last = output.get("last_message") if isinstance(output, Mapping) else None
    return output if last is None else {"answer": last}


def _plain(value: Any) -> Any:
    """Messages and documents as texts."""
    if isinstance(value, ChatMessage):
        return {"role": str(value.role.value), "content": _spoken(value)}
    if isinstance(value, Document):
        return {"content": value.content}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
