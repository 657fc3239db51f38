"""Runs in Langfuse, against a server made from its documented schemas."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hopscope.api.pushing.pulling import pull
from hopscope.api.pushing.pushing import push
from hopscope.api.services import langfuse as service
from hopscope.api.sharing.service import Note
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
)
from tests.servers.langfuse_api import LARGEST, Langfuse
from tests.store.run_examples import STARTED


def test_an_experiment_arrives_once(langfuse: Langfuse, filled: Path) -> None:
    report = push("langfuse", NAME, store=filled)
    assert report.failures == []
    assert report.sent == {"trace": 2, "note": 2 * PER_RUN, "experiment": 1, "result": 2}
    assert {span["trace"] for span in langfuse.spans.values()} == traces(filled)
    assert len(langfuse.scores) == 2 * PER_RUN
    # All but the question whether the server is there was told before.
    assert len(langfuse.requests) - 1 == report.requests
    again = push("langfuse", NAME, store=filled)
    assert (again.sent, again.requests) == ({}, 0)
    assert langfuse.requests[-1].path == "/api/public/projects"


def traces(file: Path) -> set[str]:
    with Store.open(file) as store:
        return {trace(store.load(id)).id for id in RUNS}


def test_scores_stand_on_the_trace_or_the_retriever(langfuse: Langfuse, filled: Path) -> None:
    push("langfuse", NAME, store=filled)
    with Store.open(filled) as store:
        made = trace(store.load("run-1"))
    own = [score for score in langfuse.scores.values() if score["traceId"] == made.id]
    of_trace = {score["name"] for score in own if "observationId" not in score}
    assert of_trace == {"exact_match", "f1"}
    documents = [score for score in own if "document" in score["metadata"]]
    assert sorted(
        (score["observationId"], score["metadata"]["document"], score["value"])
        for score in documents
    ) == sorted(
        (made.retrievers[index], place, place / 16)
        for index in RETRIEVALS
        for place in range(PASSAGES)
    )
    assert {score["timestamp"] for score in own} == {STARTED.isoformat()}


def test_what_was_not_measured_is_no_number(langfuse: Langfuse, filled: Path) -> None:
    push("langfuse", NAME, store=filled)
    missing = [each for each in langfuse.scores.values() if each["dataType"] != "NUMERIC"]
    assert [(each["value"], each["comment"]) for each in missing] == [("not measured", REASON)] * 2


def test_each_span_tells_its_experiment_and_item(langfuse: Langfuse, filled: Path) -> None:
    push("langfuse", NAME, store=filled)
    items = {item["id"]: item for item in langfuse.items.values()}
    assert {item["metadata"]["id"] for item in items.values()} == {*RUNS}
    for span in langfuse.spans.values():
        told = span["attributes"]
        prefix = "langfuse.experiment."
        assert told[prefix + "name"] == NAME
        assert told[prefix + "dataset.id"] == langfuse.datasets[NAME]["id"]
        item = items[told[prefix + "item.id"]]
        assert json.loads(told[prefix + "item.expected_output"]) == item["expectedOutput"]
        root = langfuse.spans[span["trace"], told[prefix + "item.root_observation_id"]]
        assert root["parent"] == ""


def test_a_run_that_was_sent_alone_joins_its_experiment(langfuse: Langfuse, filled: Path) -> None:
    push("langfuse", "run-1", store=filled)
    [root] = [span for span in langfuse.spans.values() if not span["parent"]]
    assert "langfuse.experiment.id" not in root["attributes"]
    report = push("langfuse", NAME, store=filled)
    assert report.sent["trace"] == 2
    assert all("langfuse.experiment.id" in span["attributes"] for span in langfuse.spans.values())


def test_rejected_scores_are_named_and_tried_again(langfuse: Langfuse, filled: Path) -> None:
    langfuse.rejected = {"f1"}
    report = push("langfuse", NAME, store=filled)
    assert report.sent["note"] == 2 * PER_RUN - 2
    assert [what for what, _ in report.failures] == [f"f1 of a span of run {id}" for id in RUNS]
    assert all("name is reserved" in why for _, why in report.failures)
    langfuse.rejected = set()
    again = push("langfuse", NAME, store=filled)
    assert (again.sent["note"], again.failures) == (2, [])
    assert len(langfuse.scores) == 2 * PER_RUN


def test_scores_are_sent_in_bodies_that_the_server_takes(langfuse: Langfuse) -> None:
    notes = [
        Note(
            run_id="run-1",
            trace="a" * 32,
            started=STARTED,
            span=f"{number:016x}",
            name="seper.shapley",
            value=0.5,
            explanation="é" * 5_000,
        )
        for number in range(100)
    ]
    built = service.build()
    built.send_notes(notes)
    assert len(langfuse.scores) == 100
    assert len(langfuse.requests) == built.requests(notes) > 1
    assert max(len(asked.body) for asked in langfuse.requests) > LARGEST / 2


def test_labels_of_people_come_back(langfuse: Langfuse, filled: Path) -> None:
    push("langfuse", NAME, store=filled)
    with Store.open(filled) as store:
        made = trace(store.load("run-1"))
    of_trace = {"kind": "trace", "id": made.id}
    of_span = {"kind": "observation", "id": made.retrievers[0], "traceId": made.id}
    langfuse.annotations = [
        annotation("1", of_trace, "BOOLEAN", True, comment="as the book says"),
        annotation("2", of_span, "NUMERIC", 0.25),
        annotation("3", of_span, "CATEGORICAL", "partly"),
        annotation("4", of_trace, "TEXT", "which town?"),
        {**annotation("5", of_trace, "NUMERIC", 1), "source": "API"},
    ]
    assert pull("langfuse", NAME, store=filled).new == 4
    with Store.open(filled) as store:
        labels = {each.remote: each for each in store.labels.of(["run-1"])["run-1"]}
    told = {id: (each.step, each.score, each.label, each.note) for id, each in labels.items()}
    assert told == {
        "1": (None, 1.0, "true", "as the book says"),
        "2": (0, 0.25, None, None),
        "3": (0, None, "partly", None),
        "4": (None, None, None, "which town?"),
    }
    assert {each.author for each in labels.values()} == {"ann"}
    assert {each.made for each in labels.values()} == {datetime(2026, 11, 22, 9, tzinfo=UTC)}
    assert pull("langfuse", NAME, store=filled).new == 0


def annotation(id: str, subject: dict[str, str], kind: str, value: object, **more: str) -> dict:
    return {
        "id": id,
        "name": f"label {id}",
        "source": "ANNOTATION",
        "dataType": kind,
        "value": value,
        "subject": subject,
        "authorUserId": "ann",
        "updatedAt": "2026-11-22T09:00:00.000Z",
        **more,
    }


def test_without_content_no_text_leaves(langfuse: Langfuse, filled: Path) -> None:
    push("langfuse", NAME, store=filled, content=False)
    sent = b"".join(
        gzip.decompress(asked.body) if "content-encoding" in asked.headers else asked.body
        for asked in langfuse.requests
    )
    with Store.open(filled) as store:
        run = store.load("run-1")
    texts = [run.question.text, run.answer or "", run.steps[0].query or "", REASON]
    texts += [*run.question.answers[:1], run.evidence[0].text, run.evidence[0].title]
    assert len(langfuse.spans) > 0
    assert [text for text in texts if text.encode() in sent] == []


def test_keys_are_wanted_but_not_to_count(
    langfuse: Langfuse, filled: Path, bare: pytest.MonkeyPatch
) -> None:
    bare.delenv("LANGFUSE_SECRET_KEY")
    report = push("langfuse", NAME, store=filled, dry_run=True)
    assert report.sent["trace"] == 2
    assert report.missing == ("LANGFUSE_SECRET_KEY",)
    assert langfuse.requests == []
    with pytest.raises(UsageError, match="wants keys: set LANGFUSE_SECRET_KEY"):
        push("langfuse", NAME, store=filled)
    assert langfuse.requests == []
