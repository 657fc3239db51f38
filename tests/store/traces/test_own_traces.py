"""Trace files of ours come back as the runs that they tell of."""

import gzip
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import hopscope
from hopscope.api import parts, retrieval
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import run as run_workflow
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.readers import tiny
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import (
    Credit,
    Generation,
    GenerationRequest,
    Measurement,
    Provenance,
    Run,
)
from hopscope.store.exporters import otlp as exported
from hopscope.store.formats import otlp
from hopscope.store.store import Store
from hopscope.store.trajectories.sources import Source, Unread
from hopscope.tracing.spans.evaluators import emit
from hopscope.tracing.spans.provider import installed
from hopscope.tracing.spans.trace_file import append_spans


def traced(path: Path, named: str, corpus: str, *, capture: bool = True) -> Run:
    """A run of the embedded reader, with its spans in that file."""
    reader = tiny.build()
    spec = Spec.parse(named, argument=False)
    [asked, *_] = [q for q in hopland.questions("dev") if q.kind == "chain" and q.hops == 2]
    deps = Deps(
        reader=reader,
        retriever=retrieval.retriever(retrieval.parse(corpus), reader, seed=0),
        seed=3,
        capture_content=capture,
    )
    with installed() as provider, append_spans(provider, path, print):
        return run_workflow(parts.workflow(spec.name, dict(spec.options)), asked.question, deps)


def carried(run: Run) -> Run:
    """What spans carry of a run: no right answers, no tokens and log-probabilities, times of their
    own, and only the sum of a request's usage."""
    steps = []
    for step in run.steps:
        exchanges = []
        for each in step.exchanges:
            shown = each.request.prompt.shown if len(step.exchanges) == 1 else ()
            prompt = each.request.prompt.model_copy(update={"shown": shown})
            request: GenerationRequest = each.request.model_copy(update={"prompt": prompt})
            generations = tuple(
                Generation(
                    text=generation.text,
                    finish_reason="length" if generation.finish_reason == "length" else "eos",
                    usage=generation.usage,
                )
                for generation in each.generations
            )
            exchanges.append(
                each.model_copy(
                    update={"request": request, "generations": generations, "seconds": 0.0}
                )
            )
        update = {"exchanges": tuple(exchanges), "started": run.started, "seconds": 0.0}
        steps.append(step.model_copy(update=update))
    question = run.question.model_copy(update={"answers": ()})
    return run.model_copy(update={"question": question, "steps": tuple(steps), "seconds": 0.0})


@pytest.mark.parametrize(
    ("workflow", "corpus"),
    [
        ("ircot", "hopland"),
        ("rankgpt:candidates=4,window=3,stride=1,k=2", "hopland"),
        ("naive", "hopland@RR(listwise)"),
    ],
)
def test_a_trace_file_comes_back_as_the_run(tmp_path: Path, workflow: str, corpus: str) -> None:
    run = traced(tmp_path / "trace.jsonl", workflow, corpus)
    [found] = otlp.build().runs([Source(tmp_path / "trace.jsonl")])
    assert isinstance(found, Run)
    assert abs((found.started - run.started).total_seconds()) < 1
    same = found.model_copy(update={"started": run.started})
    assert carried(same) == carried(run)
    # The same run, told again from its record.
    (tmp_path / "made.pb").write_bytes(exported.protobuf([exported.trace(run)]))
    [again] = otlp.build().runs([Source(tmp_path / "made.pb")])
    assert isinstance(again, Run)
    assert again.started == run.started
    assert carried(again) == carried(run)


def test_credits_below_the_steps_are_no_steps(tmp_path: Path) -> None:
    """They stand in the run's trace, also those that are measured later."""
    path = tmp_path / "trace.jsonl"
    run = traced(path, "naive", "hopland")
    [before] = otlp.build().runs([Source(path)])
    credits = [
        Credit(
            run_id=run.id,
            step=step,
            rule="level",
            meter="seper",
            measurement=Measurement(value=0.5),
            provenance=Provenance(reader="r"),
        )
        for step in (None, 0)
    ]
    with installed() as provider, append_spans(provider, path, print):
        assert emit(run, credits) == 2
    assert list(otlp.build().runs([Source(path)])) == [before]


def as_protobuf(path: Path) -> list[bytes]:
    """The requests of a trace file as protobuf."""
    requests = []
    for line in path.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        [scope] = told["resourceSpans"][0]["scopeSpans"]
        for span in scope["spans"]:
            for key in ("traceId", "spanId", "parentSpanId"):
                if key in span:  # protobuf's own JSON has base64
                    span[key] = b64encode(bytes.fromhex(span[key])).decode()
        request = json_format.ParseDict(told, ExportTraceServiceRequest())
        requests.append(request.SerializeToString())
    return requests


def as_phoenix(listed: list[Any]) -> str:
    """The page that a server of Phoenix gives of the spans: documents' metadata is no longer
    JSON, but one attribute for each entry."""
    spans = []
    for resource in listed:
        [scope] = resource["scopeSpans"]
        for span in scope["spans"]:
            pairs = []
            for pair in span.get("attributes", ()):
                if pair["key"].endswith(".document.metadata"):
                    for name, value in json.loads(pair["value"]["stringValue"]).items():
                        told = {"key": f"{pair['key']}.{name}", "value": {"stringValue": value}}
                        pairs.append(told)
                else:
                    pairs.append(pair)
            spans.append({**span, "attributes": pairs})
    return json.dumps({"data": spans, "next_cursor": None})


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def test_the_same_spans_in_every_form_of_otlp_are_the_same_run(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    traced(path, "naive", "hopland")
    [expected] = otlp.build().runs([Source(path)])
    requests = as_protobuf(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    listed = [json.loads(line)["resourceSpans"][0] for line in lines]
    forms = {
        "one.pb": b"".join(requests),
        "lengths.pb": b"".join(len(r).to_bytes(4, "big") + r for r in requests),
        "varints.pb": b"".join(varint(len(r)) + r for r in requests),
        "zipped.pb.gz": gzip.compress(b"".join(requests)),
        "indented.json": json.dumps({"resourceSpans": listed}, indent=2).encode(),
        "backwards.jsonl": "\n".join(reversed(lines)).encode(),
        "twice.jsonl": "\n".join([*lines, *lines]).encode(),
    }
    for name, data in forms.items():
        (tmp_path / name).write_bytes(data)
        source = Source(tmp_path / name)
        assert otlp.build().fits(source), name
        assert list(otlp.build().runs([source])) == [expected], name
    (tmp_path / "phoenix.json").write_text(as_phoenix(listed))
    assert list(otlp.build().runs([Source(tmp_path / "phoenix.json")])) == [expected]
    (tmp_path / "cut.pb").write_bytes(forms["one.pb"][:-10])
    damaged = list(otlp.build().runs([Source(tmp_path / "cut.pb")]))
    assert any(isinstance(each, Unread) and "damaged" in each.problem for each in damaged)


def test_a_run_that_is_stored_already_is_kept_and_belongs_to_the_import(tmp_path: Path) -> None:
    """The record has tokens with log-probabilities, which spans do not tell."""
    run = traced(tmp_path / "trace.jsonl", "naive", "hopland")
    with Store.open(tmp_path / "runs.db") as store:
        store.save(run)
        report = hopscope.import_runs(tmp_path / "trace.jsonl", store=store, name="kept")
        assert (report.stored, report.unread) == (1, 0)
        assert store.load(run.id) == run
        [item] = store.experiments.items("kept")
        assert item.outcome is not None
        assert item.outcome.run_id == run.id
        assert item.arm == "naive"
        again = hopscope.import_runs(tmp_path / "trace.jsonl", store=store, name="kept")
        assert (again.stored, again.known) == (0, 1)
        other = hopscope.import_runs(tmp_path / "trace.jsonl", store=store, name="other")
        assert "kept has it already" in other.problems[0].problem


def test_a_trace_without_content_or_a_step_is_named(tmp_path: Path) -> None:
    traced(tmp_path / "bare.jsonl", "naive", "hopland", capture=False)
    [bare] = otlp.build().runs([Source(tmp_path / "bare.jsonl")])
    assert isinstance(bare, Unread)
    assert "without content" in bare.problem
    traced(tmp_path / "whole.jsonl", "naive", "hopland")
    lines = (tmp_path / "whole.jsonl").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if '"hopscope.step.index"' not in line]
    (tmp_path / "lost.jsonl").write_text("\n".join(kept), encoding="utf-8")
    [lost] = otlp.build().runs([Source(tmp_path / "lost.jsonl")])
    assert isinstance(lost, Unread)
    assert "0 of the run's 2 steps" in lost.problem
