"""Credits as carrier spans below what they judge."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from openinference.semconv.trace import (
    EvaluationAttributes,
    OpenInferenceAnnotatorKindValues,
    SpanAttributes,
)
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from hopscope.runtime import spans
from hopscope.runtime.types import Credit, Measurement, Provenance, Question, Run, Step
from hopscope.tracing.spans import evaluators
from hopscope.tracing.spans.evaluators import emit
from hopscope.tracing.spans.telemetry import telemetry
from tests.servers.otlp import attributes, grpc_receiver, http_receiver, recorded

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TRACE, ROOT, SPANS = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", ("1" * 16, "2" * 16)
PROVENANCE = Provenance(reader="tiny@1", entailment="lexical", seed=5, settings={"samples": 10})


def traced(
    trace_id: str = TRACE,
    root: str = ROOT,
    steps: tuple[str, ...] = SPANS,
    reader: str = PROVENANCE.reader,
) -> Run:
    """A run as the store gives it back: of the spans only the identifiers are left."""
    return Run(
        id="r1",
        question=Question(text="Who?"),
        workflow="w",
        reader=reader,
        steps=tuple(
            Step(index=i, name="s", kind="retrieve", started=NOW, seconds=0, span_id=span_id)
            for i, span_id in enumerate(steps)
        ),
        started=NOW,
        trace_id=trace_id,
        span_id=root,
    )


def credit(step: int | None, rule: str, value: float | None, **fields: Any) -> Credit:
    reason = "no gold answer" if value is None else None
    measurement = Measurement(value=value, reason=reason, estimator="soft", seed=5, **fields)
    return Credit(
        run_id="r1",
        step=step,
        rule=rule,
        meter="seper",
        measurement=measurement,
        provenance=PROVENANCE,
    )


CREDITS = [
    credit(None, "level", 0.1, n=10),
    credit(0, "level", 0.2, n=10),
    credit(0, "trajectory", 0.1, n=10, low=-0.2, high=0.4),
    credit(1, "shapley", None),
    credit(None, "total", 0.6, n=10),
]


def test_passages_of_a_step_are_told_apart() -> None:
    """With one name and identifier each would replace the former in a backend."""
    shares = [credit(0, "shapley", value).model_copy(update={"passage": key})
              for key, value in (("a", 0.1), ("b", 0.2))]  # fmt: skip
    with recorded() as seen:
        assert emit(traced(), [*shares, credit(0, "leave_one_out", 0.3)]) == 1
    [span] = seen.spans
    told = dict(span.attributes or {})
    names = [told[f"evaluations.{i}.evaluation.name"] for i in range(3)]
    assert names == ["seper.shapley of a", "seper.shapley of b", "seper.leave_one_out"]
    assert len({told[f"evaluations.{i}.evaluation.identifier"] for i in range(3)}) == 3


def links(span: ReadableSpan) -> list[tuple[str, str]]:
    return [(f"{k.context.trace_id:032x}", f"{k.context.span_id:016x}") for k in span.links]


def test_each_step_has_one_carrier_below_it_in_the_run_s_trace() -> None:
    """They were roots of traces of their own, so that one run looked like nine."""
    with recorded() as seen, spans.step("around", "judge", index=9, capture=False):
        assert emit(traced(), CREDITS) == 3
    by_name = {span.name: span for span in seen.spans if span.name != "around"}
    assert {name: links(span) for name, span in by_name.items()} == {
        "evaluation run": [(TRACE, ROOT)],
        "evaluation step 0": [(TRACE, SPANS[0])],
        "evaluation step 1": [(TRACE, SPANS[1])],
    }
    for span in by_name.values():
        assert span.context is not None
        assert span.parent is not None
        assert [(f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}")] == links(span)
        assert span.status.status_code is StatusCode.OK
    run_names = [
        (by_name["evaluation run"].attributes or {})[f"evaluations.{i}.evaluation.name"]
        for i in range(2)
    ]
    assert run_names == ["seper.baseline", "seper.total"]


def test_a_carrier_tells_what_was_judged_and_the_scores() -> None:
    with recorded() as seen:
        emit(traced(), CREDITS)
    with recorded() as seen_without:
        emit(traced(), CREDITS, capture=False)
    told = dict(seen.named("evaluation run").attributes or {})
    hidden = dict(seen_without.named("evaluation run").attributes or {})
    assert told["input.value"] == "Who?"
    assert json.loads(str(told["output.value"])) == {"seper.baseline": 0.1, "seper.total": 0.6}
    assert "input.value" not in hidden
    assert hidden["output.value"] == told["output.value"]
    step = dict(seen.named("evaluation step 1").attributes or {})
    assert json.loads(str(step["output.value"])) == {"seper.shapley": None}


def test_the_exact_attributes_and_events_of_a_carrier() -> None:
    with recorded() as seen:
        emit(traced(), CREDITS)
    span = seen.named("evaluation step 0")
    found = dict(span.attributes or {})
    metadata = json.loads(str(found.pop("evaluations.1.evaluation.metadata")))
    assert metadata == {
        "n": 10,
        "seed": 5,
        "estimator": "soft",
        "dropped": None,
        "low": -0.2,
        "high": 0.4,
        "provenance": {
            "reader": "tiny@1",
            "entailment": "lexical",
            "seed": 5,
            "settings": {"samples": 10},
        },
        "proxy": False,
    }
    found.pop("evaluations.0.evaluation.metadata")
    settings = PROVENANCE.settings_hash
    assert found == {
        "openinference.span.kind": "EVALUATOR",
        "hopscope.run.id": "r1",
        "hopscope.step.index": 0,
        "output.value": '{"seper.level":0.2,"seper.trajectory":0.1}',
        "output.mime_type": "application/json",
        "evaluations.0.evaluation.name": "seper.level",
        "evaluations.0.evaluation.score": 0.2,
        "evaluations.0.evaluation.annotator_kind": "CODE",
        "evaluations.0.evaluation.identifier": f"seper.level:{settings}",
        "evaluations.1.evaluation.name": "seper.trajectory",
        "evaluations.1.evaluation.score": 0.1,
        "evaluations.1.evaluation.annotator_kind": "CODE",
        "evaluations.1.evaluation.identifier": f"seper.trajectory:{settings}",
    }
    assert [(e.name, dict(e.attributes or {})) for e in span.events] == [
        (
            "gen_ai.evaluation.result",
            {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": score},
        )
        for name, score in (("seper.level", 0.2), ("seper.trajectory", 0.1))
    ]


@pytest.mark.parametrize(
    ("ran", "proxied", "proxy"), [("large@1", "large@1", True), ("", "unknown", None)]
)
def test_a_carrier_names_the_reader_that_measured_what_another_ran(
    ran: str, proxied: str, proxy: bool | None
) -> None:
    with recorded() as seen:
        emit(traced(reader=ran), CREDITS)
    for span in seen.spans:
        found = dict(span.attributes or {})
        assert found["hopscope.proxy_reader"] == PROVENANCE.reader
        assert found["hopscope.proxied_reader"] == proxied
        assert json.loads(str(found["evaluations.0.evaluation.metadata"]))["proxy"] is proxy


def test_what_was_not_measured_has_a_reason_and_no_score() -> None:
    with recorded() as seen:
        emit(traced(), CREDITS)
    span = seen.named("evaluation step 1")
    found = dict(span.attributes or {})
    assert "evaluations.0.evaluation.score" not in found
    assert found["evaluations.0.evaluation.explanation"] == "no gold answer"
    [event] = span.events
    assert dict(event.attributes or {}) == {
        "gen_ai.evaluation.name": "seper.shapley",
        "gen_ai.evaluation.explanation": "no gold answer",
    }


def test_without_capture_a_reason_is_kept_back() -> None:
    """It may be the message of an error that quotes a prompt."""
    with recorded() as seen:
        emit(traced(), CREDITS, capture=False)
    assert "no gold answer" not in seen.content
    found = dict(seen.named("evaluation step 1").attributes or {})
    assert found["evaluations.0.evaluation.explanation"] == "not measured"


@pytest.mark.parametrize("run", [traced(trace_id=""), traced(root="", steps=("", ""))])
def test_a_run_that_was_not_traced_has_nothing_to_link_to(run: Run) -> None:
    with recorded() as seen:
        assert emit(run, CREDITS) == 0
    assert seen.spans == []


def test_without_an_sdk_credits_go_nowhere() -> None:
    assert emit(traced(), CREDITS) == 0


def test_a_collector_gets_links_and_events(monkeypatch: pytest.MonkeyPatch) -> None:
    with grpc_receiver() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        with telemetry():
            emit(traced(), CREDITS)
    [carrier] = [span for span in received.spans if span.name == "evaluation step 0"]
    [link] = carrier.links
    assert (link.trace_id.hex(), link.span_id.hex()) == (TRACE, SPANS[0])
    assert (carrier.trace_id, carrier.parent_span_id) == (link.trace_id, link.span_id)
    assert attributes(carrier.events[1].attributes)["gen_ai.evaluation.score.value"] == 0.1


def test_evaluations_are_log_events_where_logs_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with http_receiver() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.url)
        with telemetry():
            emit(traced(), CREDITS)
        assert received.logs == []
        monkeypatch.setenv("OTEL_LOGS_EXPORTER", "otlp")
        with telemetry():
            emit(traced(), CREDITS)
        emit(traced(), CREDITS)
    events = [
        event
        for request in received.logs
        for resource in request.resource_logs
        for scope in resource.scope_logs
        for event in scope.log_records
    ]
    assert len(events) == len(CREDITS)
    assert {event.event_name for event in events} == {"gen_ai.evaluation.result"}
    assert {event.trace_id.hex() for event in events} == {TRACE}
    told = {
        attributes(event.attributes)["gen_ai.evaluation.name"]: event.span_id.hex()
        for event in events
    }
    assert told["seper.total"] == ROOT
    assert told["seper.trajectory"] == SPANS[0]
    assert told["seper.shapley"] == SPANS[1]


def test_names_are_those_of_openinference() -> None:
    assert evaluators.EVALUATIONS == SpanAttributes.EVALUATIONS
    kinds = {kind.value for kind in OpenInferenceAnnotatorKindValues}
    assert evaluators.CODE in kinds
    for name in ("NAME", "SCORE", "EXPLANATION", "ANNOTATOR_KIND", "IDENTIFIER", "METADATA"):
        assert getattr(evaluators, name) == getattr(EvaluationAttributes, f"EVALUATION_{name}")
