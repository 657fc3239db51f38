"""Runs in Opik, against a server made from its documented schemas."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hopscope.api.pushing.pulling import pull
from hopscope.api.pushing.pushing import push
from hopscope.api.sharing.service import ServiceError
from hopscope.runtime.errors import UsageError
from hopscope.store.store import Store
from tests.api.services.stored_experiment import NAME, PASSAGES, PER_RUN, REASON, RETRIEVALS
from tests.servers.opik_api import Opik

MEASURED = PER_RUN - 1


def test_an_experiment_arrives_once(opik: Opik, filled: Path) -> None:
    report = push("opik", NAME, store=filled)
    assert report.failures == []
    assert report.sent == {"trace": 2, "note": 2 * PER_RUN, "experiment": 1, "result": 2}
    assert len(opik.traces) == 2
    assert len(opik.scores) == 2 * MEASURED
    assert len(opik.requests) - 1 == report.requests
    again = push("opik", NAME, store=filled)
    assert (again.sent, again.requests) == ({}, 0)


def test_what_is_sent_again_replaces(opik: Opik, filled: Path, tmp_path: Path) -> None:
    """The record of what was sent may be lost."""
    other = tmp_path / "copy.db"
    other.write_bytes(filled.read_bytes())
    push("opik", NAME, store=filled)
    before = {name: len(held) for name, held in vars(opik).items() if name != "requests"}
    assert push("opik", NAME, store=other).failures == []
    assert {name: len(held) for name, held in vars(opik).items() if name != "requests"} == before


def test_spans_hang_together_below_their_trace(opik: Opik, filled: Path) -> None:
    push("opik", NAME, store=filled)
    for span in opik.spans.values():
        assert span["trace_id"] in opik.traces
        parent = span["parent_span_id"]
        assert parent is None or opik.spans[parent]["trace_id"] == span["trace_id"]
    assert sum(span["parent_span_id"] is None for span in opik.spans.values()) == 2
    [first, _] = sorted(opik.traces.values(), key=lambda trace: trace["start_time"])
    assert first["output"] == {"answer": "people from the north"}


def test_scores_stand_on_the_trace_or_the_retriever(opik: Opik, filled: Path) -> None:
    push("opik", NAME, store=filled)
    of_traces = {(id, name) for kind, id, name in opik.scores if kind == "traces"}
    assert of_traces == {(id, name) for id in opik.traces for name in ("exact_match", "f1")}
    documents = {
        (opik.spans[id]["name"].split()[0], name): score["value"]
        for (kind, id, name), score in opik.scores.items()
        if kind == "spans" and "document" in name
    }
    assert documents == {
        ("retrieval", f"seper.shapley of document {place + 1}"): place / 16
        for place in range(PASSAGES)
    }
    assert sum("document" in name for _, _, name in opik.scores) == 2 * len(RETRIEVALS) * PASSAGES


def test_results_link_questions_and_traces(opik: Opik, filled: Path) -> None:
    push("opik", NAME, store=filled)
    [experiment] = opik.experiments.values()
    assert (experiment["name"], experiment["metadata"]["workflow"]) == (NAME, "ircot")
    assert {item["trace_id"] for item in opik.items.values()} == {*opik.traces}
    assert {item["dataset_item_id"] for item in opik.items.values()} == {*opik.datasets[NAME]}


def test_labels_and_comments_of_people_come_back(opik: Opik, filled: Path) -> None:
    push("opik", NAME, store=filled)
    [first, _] = sorted(opik.traces.values(), key=lambda trace: trace["start_time"])
    retriever = next(
        span
        for span in opik.spans.values()
        if span["trace_id"] == first["id"] and span["name"].startswith("retrieval")
    )
    made = {"last_updated_at": "2026-11-22T09:00:00Z"}
    opik.people = {
        first["id"]: {
            "feedback_scores": [
                {"name": "f1", "value": 0.1, "source": "sdk", "last_updated_by": "hopscope"} | made,
                {
                    "name": "right",
                    "value": 0.5,
                    "source": "ui",
                    "value_by_author": {
                        "ann": {"value": 1.0, "category_name": "yes", "source": "ui"} | made,
                        "bob": {"value": 0.0, "reason": "another town", "source": "ui"} | made,
                    },
                },
            ],
            "comments": [{"id": "c1", "text": "look again", "created_by": "ann"} | made],
        },
        retriever["id"]: {
            "feedback_scores": [
                {"name": "relevant", "value": 1, "source": "ui", "last_updated_by": "ann"} | made
            ]
        },
    }
    assert pull("opik", NAME, store=filled).new == 4
    with Store.open(filled) as store:
        labels = store.labels.of(["run-1"])["run-1"]
    told = {(e.step, e.name, e.author): (e.score, e.label, e.note) for e in labels}
    assert told == {
        (None, "right", "ann"): (1.0, "yes", None),
        (None, "right", "bob"): (0.0, None, "another town"),
        (None, "comment", "ann"): (None, None, "look again"),
        (0, "relevant", "ann"): (1.0, None, None),
    }
    assert {each.made for each in labels} == {datetime(2026, 11, 22, 9, tzinfo=UTC)}


def test_without_content_no_text_leaves(opik: Opik, filled: Path) -> None:
    push("opik", NAME, store=filled, content=False)
    sent = b"".join(asked.body for asked in opik.requests)
    with Store.open(filled) as store:
        run = store.load("run-1")
    texts = [run.question.text, run.answer or "", run.steps[0].query or "", REASON]
    texts += [*run.question.answers[:1], run.evidence[0].text, run.evidence[0].title]
    assert len(opik.spans) > 0
    assert [text for text in texts if text.encode() in sent] == []


def test_another_workspace_or_server_is_named(
    opik: Opik, filled: Path, bare: pytest.MonkeyPatch
) -> None:
    bare.setenv("OPIK_WORKSPACE", "others")
    with pytest.raises(UsageError, match="OPIK_API_KEY"):
        push("opik", NAME, store=filled)
    bare.setenv("OPIK_WORKSPACE", "team-of-tests")
    bare.setenv("OPIK_URL_OVERRIDE", opik_address(opik).removesuffix("/api"))
    with pytest.raises(ServiceError, match="404"):
        push("opik", NAME, store=filled)
    assert opik.traces == {}


def opik_address(opik: Opik) -> str:
    return f"http://{opik.requests[0].headers['host']}/api"


def test_ids_are_the_same_whenever_they_are_sent(opik: Opik, filled: Path) -> None:
    push("opik", "run-1", store=filled)
    [id] = opik.traces
    at = int(id.replace("-", "")[:12], 16) / 1000
    with Store.open(filled) as store:
        assert at == store.load("run-1").started.timestamp()
    push("opik", NAME, store=filled)
    assert len(opik.traces) == 2
    assert json.loads(opik.requests[1].body)["traces"][0]["id"] == id
