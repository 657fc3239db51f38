"""The spans and events of LlamaIndex's instrumentation, as recorded calls.

    with hopscope.record_llama_index("runs.db") as recorded:
        engine.query("Who founded it?")
    print(recorded.stored)

Spans tell who called whom, events what was searched and said.
"""

import inspect
from collections.abc import Iterable
from typing import Any

from hopscope.api.recording import attributes, replies
from hopscope.api.recording.frameworks.calls import Calls
from hopscope.runtime.errors import MissingExtraError
from hopscope.runtime.spans import keys

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.instrumentation import get_dispatcher
    from llama_index.core.instrumentation.event_handlers import BaseEventHandler
    from llama_index.core.instrumentation.events import llm, rerank, retrieval
    from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
    from llama_index.core.tools import BaseTool
    from pydantic import PrivateAttr
except ImportError:
    raise MissingExtraError("recording of LlamaIndex", "llama-index") from None


class Recorded(Calls):
    """The recorded runs of LlamaIndex; `close` ends the recording."""

    def begin_listening(self) -> None:
        """Hear what LlamaIndex tells from now on."""
        self._spans, self._events = _Spans(self), _Events(self)
        root = get_dispatcher()
        root.add_span_handler(self._spans)
        root.add_event_handler(self._events)

    def close(self) -> None:
        """Hear no more, and close the store, unless it was given open."""
        root = get_dispatcher()
        root.span_handlers = [each for each in root.span_handlers if each is not self._spans]
        root.event_handlers = [each for each in root.event_handlers if each is not self._events]
        super().close()


class _Spans(BaseSpanHandler[Any]):  # type: ignore[misc]  # LlamaIndex need not be there
    _calls: Calls = PrivateAttr()

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls

    def new_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any = None,
        parent_span_id: str | None = None,
        tags: Any = None,
        **_: Any,
    ) -> None:
        name = id_.rpartition("-")[0].partition("-")[0] or id_
        told: dict[str, Any] = {}
        if isinstance(instance, BaseTool) and name.endswith((".call", ".acall")):
            arguments = {**bound_args.arguments.get("kwargs", {}), **bound_args.arguments}
            arguments.pop("kwargs", None)
            told = attributes.called(str(instance.metadata.name), arguments)
        elif self._calls.place(parent_span_id) is None:
            told = {keys.INPUT_VALUE: _question(bound_args)}
        self._calls.begin(id_, parent_span_id, name, told)

    def prepare_to_exit_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any = None,
        result: Any = None,
        **_: Any,
    ) -> None:
        told: dict[str, Any] = {}
        if self._calls.is_root(id_):
            told = {keys.OUTPUT_VALUE: attributes.said("answer", _text(result))}
        elif isinstance(instance, BaseTool):
            told = attributes.returned(_text(result))
        self._calls.end(id_, told)

    def prepare_to_drop_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any = None,
        err: BaseException | None = None,
        **_: Any,
    ) -> None:
        self._calls.end(id_, error=err or RuntimeError("it was dropped"))


class _Events(BaseEventHandler):  # type: ignore[misc]  # as above
    _calls: Calls = PrivateAttr()

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls

    def handle(self, event: Any, **_: Any) -> None:
        """Tell the event's span what happened in it."""
        match event:
            case retrieval.RetrievalStartEvent():
                told = attributes.search(_query(event.str_or_query_bundle))
            case retrieval.RetrievalEndEvent():
                told = attributes.found(attributes.passages(map(_passage, event.nodes)))
            case rerank.ReRankEndEvent():
                hits = attributes.passages(map(_passage, event.nodes))
                told = {**attributes.found(hits), keys.SPAN_KIND: keys.RERANKER}
            case llm.LLMChatStartEvent():
                model = str(event.model_dict.get("model") or "")
                told = attributes.asked(_messages(event.messages), model)
            case llm.LLMCompletionStartEvent():
                model = str(event.model_dict.get("model") or "")
                told = attributes.asked(event.prompt, model)
            case llm.LLMChatEndEvent() if event.response is not None:
                raw = replies.read(event.response.raw)
                text = _said(event.response.message)
                told = attributes.replied(raw._replace(text=text))
            case llm.LLMCompletionEndEvent():
                raw = replies.read(event.response.raw)
                told = attributes.replied(raw._replace(text=event.response.text))
            case _:
                return
        self._calls.tell(event.span_id, told)


def _question(bound: inspect.BoundArguments) -> str:
    """What was asked: a text, a query, or messages."""
    for value in bound.arguments.values():
        if isinstance(value, str) or hasattr(value, "query_str"):
            return attributes.said("question", _query(value))
        if isinstance(value, list) and value and isinstance(value[-1], ChatMessage):
            return attributes.said("question", _said(value[-1]))
        if isinstance(value, dict):  # of keyword arguments
            told = next((v for k, v in value.items() if k in ("input", "user_msg", "query")), None)
            if told is not None:
                return attributes.said("question", _text(told))
    return attributes.said("question", "")


def _query(value: Any) -> str:
    return value if isinstance(value, str) else str(value.query_str)


def _passage(node: Any) -> dict[str, Any]:
    """A node with its score."""
    told = {"id": node.node.node_id, "text": node.node.get_content()}
    title = node.node.metadata.get("title")
    if isinstance(title, str):
        told["title"] = title
    return told if node.score is None else {**told, "score": node.score}


def _messages(messages: Iterable[Any]) -> str:
    return "\n".join(map(_said, messages))


def _said(message: Any) -> str:
    """The text of a message, and its calls of tools."""
    calls = message.additional_kwargs.get("tool_calls") or ()
    return "\n".join(filter(None, [message.content or "", *map(replies.text, calls)]))


def _text(value: Any) -> str:
    """The text of a response, a message or a tool's output."""
    for name in ("response", "content", "text"):
        found = getattr(value, name, None)
        if isinstance(found, str):
            return found
        if isinstance(found, ChatMessage):
            return _said(found)
    return value if isinstance(value, str) else str(value)
