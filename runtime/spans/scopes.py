"""Opens and closes spans, and records their failures.

Invariant: a span records the type of an exception that passes through it, and the message only if
content is captured, since messages quote texts. Spans never swallow or raise.
"""

import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import Token
from time import time_ns
from types import TracebackType

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
)

from hopscope import __version__
from hopscope.runtime.spans import keys as keys
from hopscope.runtime.spans.content import Attributes, text


def tracer() -> Tracer:
    """The current tracer, never cached: a provider may be installed between two runs."""
    return trace.get_tracer("hopscope", __version__)


def fail(span: Span, error: BaseException, *, capture: bool) -> None:
    """Mark a span as failed."""
    if not span.is_recording():
        return
    kind = type(error).__name__
    span.set_attribute(keys.ERROR_TYPE, kind)
    span.add_event(keys.EXCEPTION_EVENT, _exception(error, capture=capture))
    message = "".join(traceback.format_exception_only(error)).strip() if capture else kind
    span.set_status(Status(StatusCode.ERROR, text(message)))


def _exception(error: BaseException, *, capture: bool) -> Attributes:
    attributes: Attributes = {keys.EXCEPTION_TYPE: type(error).__name__}
    if capture:
        only = "".join(traceback.format_exception_only(error)).strip()
        attributes[keys.EXCEPTION_MESSAGE] = text(only)
        attributes[keys.EXCEPTION_STACKTRACE] = text("".join(traceback.format_exception(error)))
    return attributes


class Current(AbstractContextManager[Span]):
    """A span that is the parent of the spans inside it."""

    def __init__(
        self,
        name: str,
        kind: SpanKind = SpanKind.INTERNAL,
        *,
        capture: bool,
        start_time: int | None = None,
    ) -> None:
        self._name = name
        self._kind = kind
        self._capture = capture
        self._start_time = start_time

    def __enter__(self) -> Span:
        self._span = tracer().start_span(self._name, kind=self._kind, start_time=self._start_time)
        self._token: Token[Context] = context.attach(trace.set_span_in_context(self._span))
        return self._span

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        stack: TracebackType | None,
    ) -> None:
        context.detach(self._token)
        if error is not None:
            fail(self._span, error, capture=self._capture)
        self._span.end()


@contextmanager
def joining(trace_id: str, span_id: str) -> Iterator[None]:
    """Spans that open inside join that trace below that span, which may be of another process;
    without ids nothing changes."""
    if not trace_id or not span_id:
        yield
        return
    sampled = TraceFlags(TraceFlags.SAMPLED)
    parent = SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=sampled)
    token = context.attach(trace.set_span_in_context(NonRecordingSpan(parent)))
    try:
        yield
    finally:
        context.detach(token)


class Batch(AbstractContextManager[Sequence[Span]]):
    """One span for each item of a batch: siblings with the same start and end.

    The span of a single item is current, so that spans of a client library are its children.
    """

    def __init__(self, names: Sequence[str], kind: SpanKind, *, capture: bool) -> None:
        self._names = names
        self._kind = kind
        self._capture = capture

    def __enter__(self) -> Sequence[Span]:
        start = time_ns()
        self._alone = ExitStack()
        if len(self._names) == 1:
            [name] = self._names
            lone = Current(name, self._kind, capture=self._capture, start_time=start)
            return [self._alone.enter_context(lone)]
        self._spans = [
            tracer().start_span(name, kind=self._kind, start_time=start) for name in self._names
        ]
        return self._spans

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        stack: TracebackType | None,
    ) -> None:
        if len(self._names) == 1:
            self._alone.__exit__(kind, error, stack)
            return
        end = time_ns()
        for span in self._spans:
            if error is not None:
                fail(span, error, capture=self._capture)
            span.end(end)
