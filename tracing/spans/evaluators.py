"""Credits as spans, for any backend of traces.

A span that has ended cannot be changed, and a run may be appraised long after it. So, as in
OpenInference, a carrier span (kind EVALUATOR) holds the evaluations of a step. It belongs to the
run's trace, however late it is made: its parent is the step's span, and its only link is to that,
too. Its input is what was judged, its output the scores. An unmeasured credit has no score but a
reason.
Each evaluation is also a `gen_ai.evaluation.result` event on its carrier, and a log event of that
name in the context of the judged span, which goes nowhere unless logs are sent (see `telemetry`).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from time import time_ns

from opentelemetry._logs import LogRecord, get_logger
from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from hopscope import __version__
from hopscope.runtime.spans import keys as keys
from hopscope.runtime.spans.content import Attributes, as_json, text
from hopscope.runtime.spans.scopes import tracer
from hopscope.runtime.types import Credit, Run
from hopscope.tracing.proxies import is_proxy

EVALUATIONS = "evaluations"
NAME = "evaluation.name"
SCORE = "evaluation.score"
EXPLANATION = "evaluation.explanation"
ANNOTATOR_KIND = "evaluation.annotator_kind"
IDENTIFIER = "evaluation.identifier"
METADATA = "evaluation.metadata"
CODE = "CODE"
UNKNOWN = "unknown"
EVENT = "gen_ai.evaluation.result"
EVENT_NAME = "gen_ai.evaluation.name"
EVENT_SCORE = "gen_ai.evaluation.score.value"
EVENT_EXPLANATION = "gen_ai.evaluation.explanation"


def emit(run: Run, credits: Iterable[Credit], *, capture: bool = True) -> int:
    """Write one carrier for each step with credits and one for the run's credits. Returns their
    number.

    A run loaded from the store will do. Steps that were not traced get no carrier, because there is
    no span to stand below. A carrier names the reader that measured if it is a proxy, another one
    than ran. Without `capture` the question, queries and outputs are left out, and the reasons of
    unmeasured credits, because they may quote a model's input.
    """
    by_step: dict[int | None, list[Credit]] = defaultdict(list)
    for credit in credits:
        by_step[credit.step].append(credit)
    targets: dict[int | None, str] = {step.index: step.span_id for step in run.steps}
    targets[None] = run.span_id
    judged: dict[int | None, str | None] = {
        step.index: step.query if step.retrieved else step.output for step in run.steps
    }
    judged[None] = run.question.text
    emitted = 0
    for index, shares in by_step.items():
        target = _context(run.trace_id, targets.get(index, ""))
        if target is not None:
            name = "evaluation run" if index is None else f"evaluation step {index}"
            about = judged.get(index) if capture else None
            emitted += _carry(name, run, target, shares, about, capture=capture)
    return emitted


def title(credit: Credit) -> str:
    """The evaluation's name, such as `seper.trajectory`; a passage's, `seper.shapley of KEY`."""
    before = credit.step is None and credit.rule == "level"
    name = f"{credit.meter}.{'baseline' if before else credit.rule}"
    return name if credit.passage is None else f"{name} of {credit.passage}"


def _context(trace_id: str, span_id: str) -> SpanContext | None:
    if not trace_id or not span_id:
        return None
    sampled = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=sampled)


def _carry(
    name: str,
    run: Run,
    target: SpanContext,
    credits: Sequence[Credit],
    about: str | None,
    *,
    capture: bool,
) -> bool:
    """Write one carrier about a text. False if the span is not recorded."""
    below = set_span_in_context(NonRecordingSpan(target), Context())
    span = tracer().start_span(name, context=below, links=[Link(target)])
    recorded = span.is_recording()
    if recorded:
        span.set_attributes({keys.SPAN_KIND: keys.EVALUATOR, keys.RUN_ID: run.id})
        step = credits[0].step
        if step is not None:
            span.set_attribute(keys.STEP_INDEX, step)
        if about is not None:
            span.set_attributes({keys.INPUT_VALUE: text(about), keys.INPUT_MIME_TYPE: keys.TEXT})
        scores = {title(credit): credit.measurement.value for credit in credits}
        span.set_attributes({keys.OUTPUT_VALUE: as_json(scores), keys.OUTPUT_MIME_TYPE: keys.JSON})
        for position, credit in enumerate(credits):
            event = _evaluate(span, position, credit, ran=run.reader, capture=capture)
            get_logger("hopscope", __version__).emit(
                LogRecord(context=below, event_name=EVENT, attributes=event, timestamp=time_ns())
            )
        measured_by = dict.fromkeys(c.provenance.reader for c in credits)
        if proxies := [reader for reader in measured_by if reader != run.reader]:
            span.set_attribute(keys.PROXY_READER, ", ".join(proxies))
            span.set_attribute(keys.PROXIED_READER, run.reader or UNKNOWN)
        span.set_status(StatusCode.OK)
    span.end()
    return recorded


def _evaluate(span: Span, position: int, credit: Credit, *, ran: str, capture: bool) -> Attributes:
    """Write an evaluation on its carrier; the attributes of its event."""
    measured = credit.measurement
    prefix = f"{EVALUATIONS}.{position}."
    attributes: Attributes = {
        prefix + NAME: title(credit),
        prefix + ANNOTATOR_KIND: CODE,
        # A repeated appraisal with the same settings replaces the earlier evaluation.
        prefix + IDENTIFIER: f"{title(credit)}:{credit.provenance.settings_hash}",
        prefix + METADATA: as_json(
            {
                **measured.model_dump(include={"n", "seed", "estimator", "low", "high", "dropped"}),
                "provenance": credit.provenance.model_dump(),
                "proxy": is_proxy(ran, credit.provenance.reader),
            }
        ),
    }
    event: Attributes = {EVENT_NAME: title(credit)}
    if measured.value is not None:
        attributes[prefix + SCORE] = event[EVENT_SCORE] = float(measured.value)
    if measured.reason is not None:
        why = text(measured.reason) if capture else "not measured"
        attributes[prefix + EXPLANATION] = event[EVENT_EXPLANATION] = why
    span.set_attributes(attributes)
    span.add_event(EVENT, event)
    return event
