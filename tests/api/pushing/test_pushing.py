"""Runs go to a service once, whole or without texts, and people's labels come back."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import tenacity

import hopscope
from hopscope.api.pushing import pulling, pushing
from hopscope.api.sharing.service import Found, ServiceError, Within
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import (
    Credit,
    Hit,
    Measurement,
    Passage,
    Provenance,
    Question,
    Run,
    Step,
)
from hopscope.store.exporters.otlp import Trace
from hopscope.store.store import Store
from tests.servers.phoenix import Phoenix, phoenix

NOW = datetime(2026, 11, 23, tzinfo=UTC)
HITS = tuple(
    Hit(passage=Passage(id=f"p{place}", title="Elsa", text=f"Elsa, {place}"), score=9.0 - place)
    for place in range(3)
)
PROVENANCE = Provenance(reader="tiny@1", seed=5)


def run_of(number: int) -> Run:
    """A run that nobody traced, with an answer that is right in half of its words."""
    steps = (
        Step(
            index=0,
            name="retrieve",
            kind="retrieve",
            query="Elsa Wilby",
            ranked=HITS,
            evidence=tuple(hit.passage for hit in HITS),
            started=NOW,
            seconds=0.5,
        ),
        Step(index=1, name="read", kind="generate", output="Zana city", started=NOW, seconds=1.0),
    )
    return Run(
        id=f"run-{number}",
        question=Question(text=f"Where is Elsa, {number}?", answers=("Zana",), id=f"q{number}"),
        workflow="naive",
        steps=steps,
        answer="Zana city",
        started=NOW,
        seconds=2.0,
    )


def credits_of(run: Run) -> list[Credit]:
    def credit(step: int | None, rule: str, value: float | None, key: str | None = None) -> Credit:
        reason = "no gold answer of Elsa" if value is None else None
        measured = Measurement(
            value=value, reason=reason, n=10, seed=5, estimator="soft", low=-0.1, high=0.9
        )
        return Credit(
            run_id=run.id,
            step=step,
            passage=key,
            rule=rule,
            meter="seper",
            measurement=measured,
            provenance=PROVENANCE,
        )

    return [
        credit(None, "total", 0.6),
        credit(0, "shapley", 0.6),
        credit(0, "shapley", 0.5, "p1"),
        credit(0, "shapley", None, "p2"),
        credit(0, "shapley", 0.1, "of another index"),
    ]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment of two runs, and a run of its own."""
    file = tmp_path_factory.mktemp("pushed") / "runs.db"
    with Store.open(file) as opened:
        opened.experiments.begin_import("first")
        runs = [run_of(1), run_of(2)]
        opened.experiments.keep_imported("first", runs)
        opened.save(run_of(3))
        for run in (*runs, run_of(3)):
            opened.save_credits(credits_of(run))
    return file


@pytest.fixture
def store(database: Path, tmp_path: Path) -> Iterator[Store]:
    with Store.open(shutil.copy(database, tmp_path)) as opened:
        yield opened


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Phoenix]:
    monkeypatch.setattr(tenacity.nap.time, "sleep", lambda seconds: None)
    for name in ("PHOENIX_API_KEY", "PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_PROJECT_NAME"):
        monkeypatch.delenv(name, raising=False)
    with phoenix() as running:
        yield running


def push(store: Store, server: Phoenix, *specs: str, **options: Any) -> pushing.PushReport:
    return hopscope.push("phoenix", *specs, store=store, to=server.url, **options)


def test_an_experiment_arrives_once_with_credit_where_it_belongs(
    store: Store, server: Phoenix
) -> None:
    told = push(store, server, "first", "run-3", dry_run=True)
    assert server.bodies == []
    report = push(store, server, "first", "run-3")
    assert (report.failed, report.left) == (0, 0)
    assert report.sent == told.sent == {"trace": 3, "note": 18, "experiment": 1, "result": 2}
    # The list of the dataset's examples is the one request that posts nothing.
    assert len(server.bodies) + 1 == report.requests == told.requests
    roots = [span for span in server.spans.values() if not span["parent"]]
    assert len(roots) == len({span["trace"] for span in server.spans.values()}) == 3
    assert {span["project"] for span in server.spans.values()} == {"hopscope"}
    notes = {
        (server.spans[span]["name"], name): note["result"].get("score")
        for (span, name, _), note in server.notes.items()
    }
    assert notes == {
        ("invoke_workflow naive", "exact_match"): 0.0,
        ("invoke_workflow naive", "f1"): pytest.approx(2 / 3),
        ("invoke_workflow naive", "seper.total"): 0.6,
        ("retrieval ", "seper.shapley"): 0.6,
    }
    documents = {
        (position, name): note["result"] for (_, name, position), note in server.documents.items()
    }
    assert documents == {
        (1, "seper.shapley"): {"score": 0.5},
        (2, "seper.shapley"): {
            "label": "not measured",
            "explanation": "no gold answer of Elsa",
        },
    }
    metadata = next(iter(server.documents.values()))["metadata"]
    assert metadata["n"] == 10
    assert (metadata["low"], metadata["high"], metadata["seed"]) == (-0.1, 0.9, 5)
    retriever = next(s["attributes"] for s in server.spans.values() if "retrieval" in s["name"])
    assert retriever["retrieval.documents.1.document.score"] == 8.0
    assert '"seper.shapley":0.5' in retriever["retrieval.documents.1.document.metadata"]
    scores = {name: e["result"]["score"] for (_, name), e in server.evaluations.items()}
    assert scores == {"exact_match": 0.0, "f1": pytest.approx(2 / 3), "seper.total": 0.6}
    assert len(server.runs) == 2
    assert len(server.evaluations) == 6


def test_a_second_push_sends_nothing_but_what_is_new(store: Store, server: Phoenix) -> None:
    push(store, server, "first")
    before = len(server.bodies)
    again = push(store, server, "first")
    assert len(server.bodies) == before
    assert (again.requests, again.sent) == (0, {})
    assert again.known == {"trace": 2, "note": 12, "experiment": 1, "result": 2}
    changed = credits_of(run_of(1))[1]
    better = changed.measurement.model_copy(update={"value": 0.7})
    store.save_credits([changed.model_copy(update={"measurement": better})])
    assert push(store, server, "first").sent == {"note": 1}
    assert hopscope.push("phoenix:project=other", "run-1", store=store, to=server.url).sent == {
        "trace": 1,
        "note": 6,
    }


def test_what_failed_is_named_and_tried_again(store: Store, server: Phoenix) -> None:
    server.refuses = "f1"
    report = push(store, server, "run-1")
    assert report.failed == 1
    [(what, why)] = report.failures
    assert what == "f1 of a span of run run-1"
    assert "this name is not taken" in why
    assert {name for _, name, _ in server.notes} == {"exact_match", "seper.total", "seper.shapley"}
    server.refuses = ""
    again = push(store, server, "run-1")
    assert (again.failed, again.sent) == (0, {"note": 1})


def test_a_passing_failure_is_repeated_and_a_lasting_one_ends_the_push(
    store: Store, server: Phoenix
) -> None:
    server.failing = [503, 429]
    assert push(store, server, "run-1").failed == 0
    server.failing = [503] * 100
    with pytest.raises(ServiceError, match="answers 503: busy"):
        push(store, server, "run-2")


def test_a_service_that_is_not_there_is_named(store: Store, server: Phoenix) -> None:
    with pytest.raises(ServiceError, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        hopscope.push("phoenix", "run-1", store=store, to="http://127.0.0.1:9")


def test_without_content_no_text_leaves(
    store: Store, server: Phoenix, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(store, server, "first", content=False)
    monkeypatch.setenv("OPENINFERENCE_HIDE_INPUTS", "true")
    push(store, server, "run-3")
    sent = b"".join(server.bodies)
    assert b"seper.shapley" in sent
    assert [word for word in (b"Elsa", b"Zana", b"Where") if word in sent] == []


def test_a_key_is_sent_and_never_told(
    store: Store, server: Phoenix, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.key = "the-right-key-of-this"
    with pytest.raises(UsageError, match="PHOENIX_API_KEY"):
        push(store, server, "run-1")
    monkeypatch.setenv("PHOENIX_API_KEY", "a-wrong-key-altogether")
    with pytest.raises(UsageError) as refused:
        push(store, server, "run-1")
    assert "a-wrong" not in str(refused.value)
    monkeypatch.setenv("PHOENIX_API_KEY", server.key)
    assert push(store, server, "run-1").failed == 0
    assert server.key.encode() not in b"".join(server.bodies)


@pytest.mark.parametrize(
    ("service", "to", "told"),
    [
        ("nobody", None, "no 'nobody' among services: choose from"),
        ("phoenix:colour=red", None, "colour"),
        ("phoenix", "http://me:secret@host", "credentials"),
        ("phoenix", "ftp://host", "no address of a service"),
        ("phoenix:project=a/b", None, "cannot be called"),
    ],
)
def test_wrong_services_are_refused(store: Store, service: str, to: str | None, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        hopscope.push(service, "run-1", store=store, to=to)


def test_people_s_labels_come_back(store: Store, server: Phoenix) -> None:
    push(store, server, "first")
    spans = {span["name"]: id for id, span in server.spans.items()}
    for span, kind, name in (
        (spans["retrieval "], "HUMAN", "useful"),
        (spans["invoke_workflow naive"], "HUMAN", "correct"),
        (spans["invoke_workflow naive"], "LLM", "judged"),
    ):
        result = {"score": 1.0, "label": "yes", "explanation": "I looked"}
        note = {"span_id": span, "name": name, "annotator_kind": kind, "result": result}
        server.notes[span, name, "ada"] = {**note, "identifier": "ada"}
    retriever = spans["retrieval "]
    server.documents[retriever, "relevant", 1] = {
        "annotator_kind": "HUMAN",
        "result": {"label": "no"},
    }
    report = hopscope.pull("phoenix", "first", store=store, to=server.url)
    assert (report.runs, report.found, report.new) == (2, 3, 3)
    assert pulling.pull("phoenix", "first", store=store, to=server.url).new == 0
    [labels] = store.labels.of(["run-1", "run-2"]).values()
    told = {each.name: (each.target, each.step, each.passage, each.author) for each in labels}
    assert told == {
        "useful": ("step", 0, None, "ada"),
        "correct": ("run", None, None, "ada"),
        "relevant": ("passage", 0, "p1", ""),
    }
    [useful] = (each for each in labels if each.name == "useful")
    assert (useful.score, useful.label, useful.note) == (1.0, "yes", "I looked")
    assert useful.source == "phoenix"


def test_labels_find_their_run_in_a_trace_of_several(store: Store, server: Phoenix) -> None:
    """A program may make many runs in a trace; what is said of the trace speaks of none alone."""
    trace = "a" * 32
    for number in (7, 8):
        known = {"trace_id": trace, "span_id": f"{number}" * 16}
        store.save(run_of(number).model_copy(update=known))
    push(store, server, "run-7", "run-8")
    said = {"annotator_kind": "HUMAN", "result": {"score": 1.0}, "identifier": "ada"}
    for number in (7, 8):
        span = f"{number}" * 16
        server.notes[span, f"of {number}", "ada"] = {
            **said, "name": f"of {number}", "span_id": span
        }  # fmt: skip
    built = pushing.service_of("phoenix", server.url)
    labels = built.labels
    whole = Found(trace=trace, name="whole", score=1.0, made=NOW)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(built, "labels", lambda traces: [*labels(traces), whole, whole])
        report = hopscope.pull(built, "run-7", "run-8", store=store)
        alone = hopscope.pull(built, "run-7", store=store)
    assert (report.found, report.new, report.ambiguous) == (2, 2, 1)
    assert (alone.found, alone.ambiguous) == (1, 1)
    told = store.labels.of(["run-7", "run-8"])
    assert sorted(each.name for labels in told.values() for each in labels) == ["of 7", "of 8"]
    assert all(each.name[-1] == each.run_id[-1] for labels in told.values() for each in labels)


def test_content_is_sent_after_a_push_without_it(store: Store, server: Phoenix) -> None:
    push(store, server, "first", content=False)
    assert push(store, server, "first", content=False).sent == {}
    again = push(store, server, "first")
    assert {kind: again.sent[kind] for kind in ("trace", "experiment", "result")} == {
        "trace": 2,
        "experiment": 1,
        "result": 2,
    }
    assert b"Zana" in b"".join(server.bodies)
    assert push(store, server, "first").sent == {}
    known = push(store, server, "first", content=False).known
    assert (known["trace"], known["experiment"]) == (2, 1)


def test_runs_that_were_sent_are_not_left(
    store: Store, server: Phoenix, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = pushing.service_of("phoenix", server.url)
    send = built.send_trace

    def send_once(trace: Trace, within: Within | None) -> str:
        if trace.run.id == "run-3":
            raise ServiceError("it is gone", down=True)
        return send(trace, within)

    monkeypatch.setattr(built, "send_trace", send_once)
    report = hopscope.push(built, "run-1", "run-3", store=store)
    assert (report.sent["trace"], report.left, report.failed) == (1, 1, 1)
