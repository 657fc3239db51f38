"""An experiment goes to a real server of MLflow, and people's labels come back. The server is
asked by its own API, and what it holds is compared with the store."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hopscope.api.pushing.pulling import pull
from hopscope.api.pushing.pushing import PushReport, push
from hopscope.api.services.mlflow import PLACE
from hopscope.store.exporters.otlp import Trace, trace
from hopscope.store.store import Store
from tests.on_mlflow.conftest import NAME, QUESTIONS

API, API3 = "/api/2.0/mlflow", "/api/3.0/mlflow"
PROJECT = "first"


@pytest.fixture(scope="module")
def client(server: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server, timeout=60) as opened:
        yield opened


@pytest.fixture(scope="module")
def pushed(server: str, runs: Path) -> PushReport:
    return push(f"mlflow:project={PROJECT}", NAME, store=runs, to=server)


@pytest.fixture(scope="module")
def ours(runs: Path, pushed: PushReport) -> dict[str, Trace]:
    """The runs by the id of their trace in MLflow."""
    with Store.open(runs) as store:
        made = [trace(store.load(id)) for id in store.ids()]
    return {f"tr-{each.id}": each for each in made}


def held(client: httpx.Client) -> dict[str, Any]:
    """The traces that MLflow holds, with their assessments."""
    query = {"experiment_name": PROJECT}
    found = client.get(f"{API}/experiments/get-by-name", params=query).json()["experiment"]
    where = {
        "type": "MLFLOW_EXPERIMENT",
        "mlflow_experiment": {"experiment_id": found["experiment_id"]},
    }
    asked = {"locations": [where], "max_results": 100}
    traces = client.post(f"{API3}/traces/search", json=asked).json()["traces"]
    return {each["trace_id"]: each for each in traces}


def assessments(client: httpx.Client) -> list[dict[str, Any]]:
    return [each for info in held(client).values() for each in info.get("assessments", ())]


def test_each_run_is_one_trace(
    client: httpx.Client, pushed: PushReport, ours: dict[str, Trace]
) -> None:
    assert pushed.failures == []
    assert len(ours) == QUESTIONS
    assert held(client).keys() == ours.keys()
    id, made = next(iter(ours.items()))
    told = client.get(f"{API3}/traces/get", params={"trace_id": id}).json()["trace"]
    assert len(told["spans"]) == len(made.spans)
    roots = [span["name"] for span in told["spans"] if not span.get("parent_span_id")]
    assert roots == ["invoke_workflow ircot"]


def test_feedback_stands_on_the_retrievers_and_documents(
    client: httpx.Client, runs: Path, pushed: PushReport, ours: dict[str, Trace]
) -> None:
    told = Counter(
        (each["trace_id"], each.get("span_id", ""), each["metadata"].get(PLACE, ""))
        for each in assessments(client)
        if each["assessment_name"].startswith("seper.shapley")
    )
    expected: Counter[tuple[str, str, str]] = Counter()
    with Store.open(runs) as store:
        for id, made in ours.items():
            for credit in store.credits(made.run.id):
                if credit.rule != "shapley" or credit.step is None:
                    continue
                span = made.retrievers.get(credit.step, made.steps[credit.step])
                place = ""
                if credit.passage is not None:
                    ranked = made.run.steps[credit.step].ranked
                    place = str([hit.passage.key for hit in ranked].index(credit.passage))
                expected[id, span, place] += 1
    assert told == expected
    assert any(place for _, _, place in told)


def test_values_are_those_of_the_store(
    client: httpx.Client, runs: Path, ours: dict[str, Trace], pushed: PushReport
) -> None:
    """An unmeasured one is an error with its reason."""
    told = {
        (each["trace_id"], each["span_id"]): each["feedback"]
        for each in assessments(client)
        if each["assessment_name"] == "seper.trajectory" and PLACE not in each["metadata"]
    }
    with Store.open(runs) as store:
        for id, made in ours.items():
            for credit in store.credits(made.run.id):
                if credit.rule == "trajectory" and credit.step is not None:
                    span = made.retrievers.get(credit.step, made.steps[credit.step])
                    feedback = told.pop((id, span))
                    assert feedback["value"] == credit.measurement.value
                    reason = feedback.get("error", {}).get("error_message")
                    assert reason == credit.measurement.reason
    assert told == {}


def test_answers_have_their_scores_and_questions_an_evaluation_run(
    client: httpx.Client, ours: dict[str, Trace], pushed: PushReport
) -> None:
    scored = {
        each["trace_id"] for each in assessments(client) if each["assessment_name"] == "exact_match"
    }
    assert scored == ours.keys()
    [experiment] = {
        info["trace_location"]["mlflow_experiment"]["experiment_id"]
        for info in held(client).values()
    }
    asked = {"experiment_ids": [experiment]}
    [run] = client.post(f"{API}/runs/search", json=asked).json()["runs"]
    assert (run["info"]["run_name"], run["info"]["status"]) == (NAME, "FINISHED")
    tags = {each["key"]: each["value"] for each in run["data"]["tags"]}
    assert tags["mlflow.runType"] == "genai_evaluate"
    [used] = run["inputs"]["dataset_inputs"]
    assert used["dataset"]["name"] == NAME
    of_run = {
        "locations": [
            {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}}
        ],
        "filter": f"run_id = '{run['info']['run_id']}'",
        "max_results": 100,
    }
    linked = client.post(f"{API3}/traces/search", json=of_run).json()["traces"]
    assert {each["trace_id"] for each in linked} == ours.keys()
    [dataset] = client.post(f"{API3}/datasets/search", json=asked).json()["datasets"]
    path = f"{API3}/datasets/{dataset['dataset_id']}/records"
    records = client.get(path).json()["records"]
    assert records.count('"dataset_record_id"') == QUESTIONS


def test_a_second_push_adds_nothing(
    client: httpx.Client, server: str, runs: Path, pushed: PushReport, tmp_path: Path
) -> None:
    """Neither with the record of the first nor without it, as after a copy of the database."""
    before = {each["assessment_id"] for each in assessments(client)}
    again = push(f"mlflow:project={PROJECT}", NAME, store=runs, to=server)
    assert (again.sent, again.requests) == ({}, 0)
    forgetful = tmp_path / "copy.db"
    with Store.open(runs) as store, Store.open(forgetful) as other:
        for id in store.ids():
            other.save(store.load(id))
            other.save_credits(store.credits(id))
        ids = store.ids()
    report = push(f"mlflow:project={PROJECT}", *ids, store=forgetful, to=server)
    assert (report.sent["trace"], report.failures) == (QUESTIONS, [])
    assert {each["assessment_id"] for each in assessments(client)} == before
    assert len(held(client)) == QUESTIONS


def test_a_trace_of_another_experiment_is_named(
    client: httpx.Client, server: str, runs: Path, pushed: PushReport
) -> None:
    """MLflow would take it and leave it where it is."""
    report = push("mlflow:project=second", "last", store=runs, to=server)
    assert (report.sent, len(report.failures)) == ({}, 1)
    assert "MLflow moves no trace" in report.failures[0][1]
    assert len(held(client)) == QUESTIONS


def test_labels_of_people_come_back(
    client: httpx.Client, server: str, runs: Path, ours: dict[str, Trace]
) -> None:
    id, made = next(iter(ours.items()))
    step, span = next(iter(made.retrievers.items()))
    source = {"source_type": "HUMAN", "source_id": "ann@example.org"}

    def say(name: str, told: dict[str, Any], **more: Any) -> None:
        assessment = {"assessment_name": name, "trace_id": id, "source": source, **told, **more}
        path = f"{API3}/traces/{id}/assessments"
        client.post(path, json={"assessment": assessment}).raise_for_status()

    say("right", {"feedback": {"value": True}}, rationale="as the book says")
    say("relevant", {"feedback": {"value": 0.5}}, span_id=span)
    say("expected_response", {"expectation": {"value": "Port Hellon"}})
    say("relevant", {"feedback": {"value": "no"}}, span_id=span, metadata={PLACE: "1"})
    say("mlflow.notes", {"feedback": {"value": "which town?"}})  # as the pages of MLflow do
    name = f"mlflow:project={PROJECT}"
    assert pull(name, NAME, store=runs, to=server).new == 5
    with Store.open(runs) as store:
        labels = store.labels.of([made.run.id])[made.run.id]
    key = made.run.steps[step].ranked[1].passage.key
    assert {(each.step, each.passage, each.name): each for each in labels}.keys() == {
        (None, None, "right"),
        (step, None, "relevant"),
        (None, None, "expected_response"),
        (None, None, "mlflow.notes"),
        (step, key, "relevant"),
    }
    told = {(each.name, each.score, each.label, each.note) for each in labels}
    assert told == {
        ("right", 1.0, "true", "as the book says"),
        ("relevant", 0.5, None, None),
        ("relevant", None, "no", None),
        ("expected_response", None, "Port Hellon", None),
        ("mlflow.notes", None, None, "which town?"),
    }
    assert {each.author for each in labels} == {"ann@example.org"}
    assert pull(name, NAME, store=runs, to=server).new == 0
