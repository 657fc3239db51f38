"""Runs in MLflow, against a small one that answers as the real one does (tests/on_mlflow)."""

import base64
import gzip
from pathlib import Path

import pytest

from hopscope.api.pushing.pulling import pull
from hopscope.api.pushing.pushing import push
from hopscope.api.services.mlflow import PLACE
from hopscope.runtime.errors import UsageError
from hopscope.store.exporters.otlp import trace
from hopscope.store.store import Store
from tests.api.services.stored_experiment import (
    NAME,
    PASSAGES,
    PER_RUN,
    REASON,
    RETRIEVALS,
    RUNS,
    a_credit,
)
from tests.servers.mlflow_api import MLflow


def test_an_experiment_arrives_once(mlflow: MLflow, filled: Path) -> None:
    report = push("mlflow", NAME, store=filled)
    assert report.failures == []
    assert report.sent == {"trace": 2, "note": 2 * PER_RUN, "experiment": 1, "result": 2}
    assert len(mlflow.traces) == 2
    assert len(mlflow.assessments) == 2 * PER_RUN
    assert len(mlflow.requests) - 2 <= report.requests  # two made the project
    asked = len(mlflow.requests)
    again = push("mlflow", NAME, store=filled)
    assert (again.sent, again.requests) == ({}, 0)
    assert len(mlflow.requests) == asked + 1


def test_what_is_sent_again_replaces(mlflow: MLflow, filled: Path, tmp_path: Path) -> None:
    """The record of what was sent may be lost."""
    other = tmp_path / "copy.db"
    other.write_bytes(filled.read_bytes())
    push("mlflow", NAME, store=filled)
    before = {name: len(held) for name, held in vars(mlflow).items() if name != "requests"}
    assert push("mlflow", NAME, store=other).failures == []
    assert {name: len(held) for name, held in vars(mlflow).items() if name != "requests"} == before


def test_a_credit_that_changed_changes_its_feedback(mlflow: MLflow, filled: Path) -> None:
    push("mlflow", NAME, store=filled)
    with Store.open(filled) as store:
        run = store.load("run-1")
        store.save_credits([a_credit(run, 0, None, 0.875)])
        span = trace(run).retrievers[0]
    assert push("mlflow", NAME, store=filled).sent == {"note": 1}
    [changed] = [
        each
        for each in mlflow.assessments.values()
        if each.get("span_id") == span and PLACE not in each["metadata"]
    ]
    assert changed["feedback"] == {"value": 0.875}
    assert len(mlflow.assessments) == 2 * PER_RUN


def test_feedback_stands_on_the_trace_the_retriever_and_documents(
    mlflow: MLflow, filled: Path
) -> None:
    push("mlflow", NAME, store=filled)
    with Store.open(filled) as store:
        made = trace(store.load("run-1"))
    own = [each for each in mlflow.assessments.values() if each["trace_id"] == f"tr-{made.id}"]
    of_trace = {each["assessment_name"] for each in own if "span_id" not in each}
    assert of_trace == {"exact_match", "f1"}
    documents = {
        (each["span_id"], each["metadata"][PLACE]): each["feedback"]["value"]
        for each in own
        if PLACE in each["metadata"]
    }
    assert documents == {
        (made.retrievers[index], str(place)): place / 16
        for index in RETRIEVALS
        for place in range(PASSAGES)
    }
    [missing] = [each["feedback"] for each in own if each["feedback"]["value"] is None]
    assert missing["error"]["error_message"] == REASON
    assert {each["source"]["source_type"] for each in own} == {"CODE"}


def test_an_experiment_is_an_evaluation_run_with_a_dataset(mlflow: MLflow, filled: Path) -> None:
    push("mlflow", NAME, store=filled)
    [run] = mlflow.runs.values()
    assert (run["info"]["run_name"], run["status"]) == (NAME, "FINISHED")
    assert "genai_evaluate" in run["tags"]
    assert run["params"]["workflow"] == "ircot"
    assert {trace for _, trace in mlflow.linked} == mlflow.traces.keys()
    records = {record["inputs"]["question_id"]: record for record in mlflow.records.values()}
    assert records.keys() == {*RUNS}
    expected = {"expected_response": "people", "aliases": ["they"]}
    assert records["run-1"]["expectations"] == expected


def test_a_trace_of_another_experiment_is_named(mlflow: MLflow, filled: Path) -> None:
    push("mlflow:project=first", "run-1", store=filled)
    report = push("mlflow:project=second", "run-1", store=filled)
    assert [what for what, _ in report.failures] == ["the trace of run run-1"]
    assert "MLflow moves no trace" in report.failures[0][1]


def test_labels_of_people_come_back(mlflow: MLflow, filled: Path) -> None:
    push("mlflow", NAME, store=filled)
    with Store.open(filled) as store:
        run = store.load("run-1")
    made = trace(run)
    for name, told in (
        ("right", {"feedback": {"value": False}, "rationale": "another town"}),
        ("relevant", {"feedback": {"value": 2}, "span_id": made.retrievers[0]}),
        ("tags", {"expectation": {"serialized_value": {"value": '["a", "b"]'}}}),
        ("mlflow.notes", {"feedback": {"value": "look again"}}),
        ("emptied", {"feedback": {"value": None}}),
    ):
        source = {"source_type": "HUMAN", "source_id": "ann"}
        of = {"assessment_name": name, "trace_id": f"tr-{made.id}", "source": source}
        mlflow._assess(f"tr-{made.id}", {**of, **told})
    assert pull("mlflow", NAME, store=filled).new == 4
    with Store.open(filled) as store:
        labels = store.labels.of(["run-1"])["run-1"]
    assert {(e.step, e.name, e.score, e.label, e.note, e.author) for e in labels} == {
        (None, "right", 0.0, "false", "another town", "ann"),
        (0, "relevant", 2.0, None, None, "ann"),
        (None, "tags", None, '["a", "b"]', None, "ann"),
        (None, "mlflow.notes", None, None, "look again", "ann"),
    }


def test_without_content_no_text_leaves(mlflow: MLflow, filled: Path) -> None:
    push("mlflow", NAME, store=filled, content=False)
    sent = b"".join(
        gzip.decompress(asked.body) if "content-encoding" in asked.headers else asked.body
        for asked in mlflow.requests
    )
    with Store.open(filled) as store:
        run = store.load("run-1")
    texts = [run.question.text, run.answer or "", run.steps[0].query or "", REASON]
    texts += [run.evidence[0].text, run.evidence[0].title]
    assert len(mlflow.spans) > 0
    assert [text for text in texts if text.encode() in sent] == []


def test_a_user_and_a_password_do_instead_of_a_token(
    mlflow: MLflow, filled: Path, bare: pytest.MonkeyPatch
) -> None:
    bare.delenv("MLFLOW_TRACKING_TOKEN")
    bare.setenv("MLFLOW_TRACKING_USERNAME", "ann")
    bare.setenv("MLFLOW_TRACKING_PASSWORD", "a-long-password")
    with pytest.raises(UsageError, match="MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"):
        push("mlflow", NAME, store=filled)  # this server takes tokens only
    login = base64.b64encode(b"ann:a-long-password").decode()
    assert [asked.headers["authorization"] for asked in mlflow.requests] == [f"Basic {login}"]
