"""An experiment goes to a real server of Phoenix, and people's labels come back. The server is
asked by its own API, and what it holds is compared with the store."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import hopscope
from hopscope.api.pushing.pushing import PushReport
from hopscope.api.session import Session
from hopscope.lab import agreement
from hopscope.runtime.types import Credit, Measurement, Run
from hopscope.store.exporters.otlp import Trace, trace
from hopscope.store.store import Store
from hopscope.store.traces import otlp
from hopscope.store.traces.span import Span
from hopscope.tracing.spans.telemetry import telemetry
from tests.on_phoenix.conftest import NAME, QUESTIONS

PROJECT = "first"


@pytest.fixture(scope="module")
def client(server: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server, timeout=60) as opened:
        yield opened


@pytest.fixture(scope="module")
def pushed(server: str, runs: Path) -> PushReport:
    return hopscope.push(f"phoenix:project={PROJECT}", NAME, store=runs, to=server)


@pytest.fixture(scope="module")
def ours(runs: Path, pushed: PushReport) -> list[Trace]:
    with Store.open(runs) as store:
        return [trace(store.load(id)) for id in store.ids()]


def held(client: httpx.Client, project: str = PROJECT) -> list[Span]:
    """All spans that the project holds."""
    page = client.get(f"/v1/projects/{project}/spans/otlpv1", params={"limit": 1000})
    told = page.raise_for_status().json()
    assert told["next_cursor"] is None
    return [*otlp.spans(told)]


def settled(client: httpx.Client, project: str) -> list[Span]:
    """As `held`, once the server has stored the spans that it took: as many as a second before."""
    before = -1
    for _ in range(60):
        there = client.get(f"/v1/projects/{project}").is_success
        spans = held(client, project) if there else []
        if spans and len(spans) == before:
            return spans
        before = len(spans)
        time.sleep(1)
    pytest.fail(f"Phoenix stores no spans of {project}")


def annotations(client: httpx.Client, spans: list[str], project: str = PROJECT) -> list[Any]:
    asked: dict[str, Any] = {"span_ids": spans, "limit": 10_000}
    reply = client.get(f"/v1/projects/{project}/span_annotations", params=asked)
    data: list[Any] = reply.raise_for_status().json()["data"]
    return data


def judged(client: httpx.Client, span: str) -> list[Any]:
    """The annotations of a span's documents."""
    query = (
        f'{{ getSpanByOtelId(spanId: "{span}") '
        "{ documentEvaluations { name score documentPosition } } }"
    )
    reply = client.post("/graphql", json={"query": query}).raise_for_status().json()
    found: list[Any] = reply["data"]["getSpanByOtelId"]["documentEvaluations"]
    return found


def test_each_run_is_one_trace_with_one_root(
    client: httpx.Client, pushed: PushReport, ours: list[Trace]
) -> None:
    assert pushed.failures == []
    spans = held(client)
    assert len(ours) == QUESTIONS
    assert {span.trace for span in spans} == {each.id for each in ours}
    assert {span.id for span in spans if not span.parent} == {each.root for each in ours}
    assert {span.id for span in spans} == {span.id for each in ours for span in each.spans}


def test_credits_stand_on_the_retrievers_and_on_their_documents(
    client: httpx.Client, runs: Path, ours: list[Trace]
) -> None:
    spans = [span.id for each in ours for span in each.spans]
    told = Counter(
        (each["span_id"], each["name"], each["result"]["score"])
        for each in annotations(client, spans)
        if "shapley" in each["name"] or "trajectory" in each["name"]
    )
    expected: Counter[tuple[str, str, float | None]] = Counter()
    documents: dict[str, Counter[tuple[int, str, float | None]]] = {}
    with Store.open(runs) as store:
        for made in ours:
            for credit in store.credits(made.run.id):
                if credit.rule in ("shapley", "trajectory") and credit.step is not None:
                    _count(credit, made, expected, documents)
    assert told == expected
    assert documents
    for span, wanted in documents.items():
        found = Counter(
            (each["documentPosition"], each["name"], each["score"]) for each in judged(client, span)
        )
        assert found == wanted


def _count(
    credit: Credit,
    made: Trace,
    spans: Counter[tuple[str, str, float | None]],
    documents: dict[str, Counter[tuple[int, str, float | None]]],
) -> None:
    assert credit.step is not None
    name, value = f"{credit.meter}.{credit.rule}", credit.measurement.value
    span = made.retrievers.get(credit.step, made.steps[credit.step])
    if credit.passage is None:
        spans[span, name, value] += 1
        return
    keys = [hit.passage.key for hit in made.run.steps[credit.step].ranked]
    of = documents.setdefault(span, Counter())
    of[keys.index(credit.passage), name, value] += 1


def test_answers_are_scored_on_the_run_and_in_an_experiment(
    client: httpx.Client, ours: list[Trace]
) -> None:
    roots = [each.root for each in ours]
    scored = {
        each["span_id"]: each["result"]["score"]
        for each in annotations(client, roots)
        if each["name"] == "exact_match"
    }
    [dataset] = client.get("/v1/datasets", params={"name": NAME}).json()["data"]
    assert dataset["example_count"] == QUESTIONS
    [experiment] = client.get(f"/v1/datasets/{dataset['id']}/experiments").json()["data"]
    assert experiment["successful_run_count"] == QUESTIONS
    told = client.get(f"/v1/experiments/{experiment['id']}/json").raise_for_status().json()
    assert {each["trace_id"] for each in told} == {each.id for each in ours}
    by_trace = {each.id: each for each in ours}
    for each in told:
        made = by_trace[each["trace_id"]]
        assert each["input"] == {"question": made.run.question.text}
        assert each["reference_output"] == {"answers": list(made.run.question.answers)}
        assert each["output"] == made.run.answer
        scores = {one["name"]: one["score"] for one in each["annotations"]}
        assert scores["exact_match"] == scored[made.root]
        assert "seper.total" in scores


def test_a_second_push_adds_nothing(
    client: httpx.Client, server: str, runs: Path, pushed: PushReport, ours: list[Trace]
) -> None:
    spans = [span.id for each in ours for span in each.spans]
    before = len(held(client)), len(annotations(client, spans))
    again = hopscope.push(f"phoenix:project={PROJECT}", NAME, store=runs, to=server)
    assert (again.sent, again.requests, again.failed) == ({}, 0, 0)
    assert again.known == pushed.sent
    assert (len(held(client)), len(annotations(client, spans))) == before


def test_people_s_labels_return_and_stand_beside_the_credit(
    client: httpx.Client, server: str, runs: Path, ours: list[Trace]
) -> None:
    made = next(each for each in ours if each.retrievers and each.run.steps)
    step, span = next(iter(made.retrievers.items()))
    told = {
        "span_id": span,
        "annotator_kind": "HUMAN",
        "result": {"label": "yes", "explanation": "it names the town"},
    }
    sent = {"data": [{**told, "name": "useful", "identifier": "ada"}]}
    client.post("/v1/span_annotations", params={"sync": True}, json=sent).raise_for_status()
    sent = {"data": [{**told, "name": "relevant", "document_position": 0}]}
    client.post("/v1/document_annotations", params={"sync": True}, json=sent).raise_for_status()
    report = hopscope.pull(f"phoenix:project={PROJECT}", NAME, store=runs, to=server)
    assert (report.runs, report.found, report.new) == (QUESTIONS, 2, 2)
    again = hopscope.pull(f"phoenix:project={PROJECT}", NAME, store=runs, to=server)
    assert (again.found, again.new) == (2, 0)
    with Store.open(runs) as store:
        [labels] = store.labels.of([made.run.id]).values()
        listed, _ = agreement.labels(NAME, store=store)
        credits = {
            (credit.step, credit.rule): credit.measurement.value
            for credit in store.credits(made.run.id)
            if credit.passage is None
        }
    key = made.run.steps[step].ranked[0].passage.key
    assert {(each.name, each.target, each.step, each.passage) for each in labels} == {
        ("useful", "step", step, None),
        ("relevant", "passage", step, key),
    }
    assert {(each.note, each.source) for each in labels} == {("it names the town", "phoenix")}
    [useful] = (row for row in listed.rows if row["name"] == "useful")
    assert isinstance(useful["credit"], Measurement)
    assert (useful["author"], useful["label"]) == ("ada", "yes")
    assert useful["credit"].value == credits[step, "shapley"]


def test_the_project_is_imported_as_the_runs_that_it_shows(
    client: httpx.Client, server: str, tmp_path: Path, ours: list[Trace]
) -> None:
    report = hopscope.import_runs(
        f"{server}/projects/{PROJECT}", store=tmp_path / "again.db", name="again"
    )
    assert (report.runs, report.unread) == (QUESTIONS, 0)
    with Store.open(tmp_path / "again.db") as store:
        for made in ours:
            found = store.load(made.run.id)
            assert told_of(found) == told_of(made.run)


def told_of(run: Run) -> list[Any]:
    """What a run did, without times."""
    steps = [(s.name, s.kind, s.query, s.ranked, s.evidence, s.output, s.usage) for s in run.steps]
    return [run.question.text, run.workflow, run.reader, run.seed, run.answer, run.status, steps]


def test_a_run_that_was_traced_there_keeps_its_trace(
    client: httpx.Client, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credits that are measured later join it, and a push annotates the spans that are there."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{server}/v1/traces")
    monkeypatch.setenv("PHOENIX_PROJECT_NAME", "live")
    question = "What is the headquarters city of the company that employs Elsa Wilby?"
    with Session(store=tmp_path / "runs.db", samples=2, meters=["seper"]) as session:
        with telemetry():
            run = session.ask(question, ["Zana"], workflow="naive").record
        with telemetry():
            session.credit(run, rules=["shapley"])
    spans = settled(client, "live")
    [root] = (span for span in spans if not span.parent)
    assert (root.trace, root.id) == (run.trace_id, run.span_id)
    assert {span.trace for span in spans} == {run.trace_id}
    evaluations = [span for span in spans if span.meaning == "evaluation"]
    assert evaluations
    assert {span.parent for span in evaluations} <= {run.span_id, *(s.span_id for s in run.steps)}
    assert all(json.loads(span.text("output.value")) for span in evaluations)
    report = hopscope.push("phoenix", run.id, store=tmp_path / "runs.db", to=server)
    assert (report.failed, report.sent["trace"], report.known["trace"]) == (0, 0, 1)
    assert len(held(client, "live")) == len(spans)
    [retriever] = (span for span in spans if span.meaning == "search")
    names = {each["name"] for each in annotations(client, [retriever.id], "live")}
    assert "seper.trajectory" in names
