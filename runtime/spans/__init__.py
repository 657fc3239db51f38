"""The spans of a run, after OpenInference and OpenTelemetry's gen_ai conventions at once.

    invoke_workflow ircot              CHAIN      the run
    ├── retrieve                       CHAIN      a step
    │   └── retrieval bm25:hopland     RETRIEVER  one query
    │       └── rerank listwise        RERANKER   a stage of a composed retriever; compress likewise
    └── reason                         CHAIN
        └── chat tiny                  LLM        one request

Needs only opentelemetry-api: without an SDK, or with a run that is not sampled, no attribute is
built. Without `capture`, spans carry ids, scores and counts, but nothing that a person or a
model wrote.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    format_span_id,
    format_trace_id,
    use_span,
)
from pydantic import JsonValue

from hopscope.runtime.spans import content as content
from hopscope.runtime.spans import keys as keys
from hopscope.runtime.spans import records as records
from hopscope.runtime.spans.scopes import Batch, Current, fail, joining, tracer
from hopscope.runtime.stages import Candidates, StageNote
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Hit,
    Question,
    Run,
    Step,
    StepKind,
)

__all__ = [
    "begin_step",
    "below",
    "describe_run",
    "describe_step",
    "end_step",
    "fail",
    "generations",
    "joining",
    "retrievals",
    "span_id",
    "stages",
    "step",
    "trace_id",
    "workflow",
]


def span_id(span: Span) -> str:
    """16 hex digits; empty when nothing is recorded."""
    context = span.get_span_context()
    return format_span_id(context.span_id) if span.is_recording() and context.is_valid else ""


def trace_id(span: Span) -> str:
    """32 hex digits; empty when nothing is recorded."""
    context = span.get_span_context()
    return format_trace_id(context.trace_id) if span.is_recording() and context.is_valid else ""


@contextmanager
def workflow(
    run_id: str,
    name: str,
    question: Question,
    options: Mapping[str, JsonValue],
    *,
    capture: bool,
) -> Iterator[Span]:
    """The span of a whole run."""
    name = content.text(name)
    with Current(f"{keys.INVOKE_WORKFLOW} {name}", capture=capture) as span:
        if span.is_recording():
            told = records.begun(run_id, name, question, options, capture=capture)
            span.set_attributes(told)
        yield span


def describe_run(span: Span, run: Run, *, capture: bool) -> None:
    """Describe a run on its span."""
    if not span.is_recording():
        return
    span.set_attributes(records.ended(run, capture=capture))
    failure = records.failure(run, capture=capture)
    if failure is not None:
        span.set_status(Status(StatusCode.ERROR, failure))


@contextmanager
def step(name: str, kind: StepKind, *, index: int, capture: bool) -> Iterator[Span]:
    """The span of one execution of a node."""
    with Current(name, capture=capture) as span:
        _identify_step(span, name, kind, index)
        yield span


def begin_step(name: str) -> Span:
    """The span of a step whose kind and place are known at its end only; see `end_step`. It is
    nobody's parent, except inside `below`."""
    return tracer().start_span(content.text(name))


def end_step(span: Span, step: Step, *, capture: bool) -> None:
    """Describe a span that was opened by `begin_step`, and end it."""
    _identify_step(span, content.text(step.name), step.kind, step.index)
    describe_step(span, step, capture=capture)
    span.end()


def below(span: Span) -> AbstractContextManager[Span]:
    """Make this span the parent of all spans that open inside."""
    return use_span(span, record_exception=False, set_status_on_exception=False)


def _identify_step(span: Span, name: str, kind: StepKind, index: int) -> None:
    if span.is_recording():
        span.set_attributes(records.identity(name, kind, index))


def describe_step(span: Span, step: Step, *, capture: bool) -> None:
    """Describe a step on its span."""
    if not span.is_recording():
        return
    span.set_attributes(records.done(step, capture=capture))
    if step.decision is not None:
        span.add_event(keys.DECISION_EVENT, records.decided(step.decision))


@contextmanager
def generations(
    reader_name: str, requests: Sequence[GenerationRequest], *, capture: bool
) -> Iterator[Callable[[Sequence[Sequence[Generation]]], list[str]]]:
    """One span for each request to a reader. It yields a function; call that with the replies."""
    name = content.text(f"{keys.CHAT} {reader_name}")
    with Batch([name] * len(requests), SpanKind.CLIENT, capture=capture) as opened:
        for span, request in zip(opened, requests, strict=True):
            if span.is_recording():
                span.set_attributes(content.request(reader_name, request, capture=capture))

        def finish(replies: Sequence[Sequence[Generation]]) -> list[str]:
            # The caller reports a reader that returns too few replies.
            for span, reply in zip(opened, replies, strict=False):
                if span.is_recording():
                    span.set_attributes(content.reply(reader_name, reply, capture=capture))
            return [span_id(span) for span in opened]

        yield finish


@contextmanager
def retrievals(
    retriever_name: str, queries: Sequence[str], *, k: int, capture: bool
) -> Iterator[Callable[[Sequence[Sequence[Hit]]], None]]:
    """One span for each query to a retriever. It yields a function; call that with the rankings."""
    name = content.text(f"{keys.RETRIEVAL} {retriever_name}")
    with Batch([name] * len(queries), SpanKind.CLIENT, capture=capture) as opened:
        for span, query in zip(opened, queries, strict=True):
            if span.is_recording():
                span.set_attributes(content.query(retriever_name, query, k=k, capture=capture))

        def finish(rankings: Sequence[Sequence[Hit]]) -> None:
            for span, hits in zip(opened, rankings, strict=False):
                if span.is_recording():
                    span.set_attributes(content.ranking(hits, capture=capture))

        yield finish


@contextmanager
def stages(
    operation: str, name: str, operator: str, asked: Sequence[Candidates], *, k: int, capture: bool
) -> Iterator[Callable[[Sequence[Sequence[Hit]], Sequence[StageNote]], None]]:
    """One span for each query whose candidates are reranked or compressed. It yields a function;
    call that with the results and the notes."""
    names = [content.text(f"{operation} {name}")] * len(asked)
    with Batch(names, SpanKind.INTERNAL, capture=capture) as opened:
        for span, one in zip(opened, asked, strict=True):
            if span.is_recording():
                span.set_attributes(
                    content.stage(operation, name, operator, one, k=k, capture=capture)
                )

        def finish(rankings: Sequence[Sequence[Hit]], notes: Sequence[StageNote]) -> None:
            for span, hits, note in zip(opened, rankings, notes, strict=True):
                if span.is_recording():
                    span.set_attributes(content.staged(hits, note, capture=capture))

        yield finish
