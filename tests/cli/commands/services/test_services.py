"""`hopscope push`, `pull` and `labels` against a small Phoenix: what they print, and exit codes."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hopscope.runtime.types import Hit, Passage, Question, Run, Step
from hopscope.store.store import Store
from tests.cli.experiment_example import call
from tests.servers.phoenix import Phoenix, phoenix

NOW = datetime(2026, 11, 23, tzinfo=UTC)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Phoenix]:
    """A server, and the database with one run that finds one passage."""
    monkeypatch.setenv("HOPSCOPE_DB", str(tmp_path / "runs.db"))
    monkeypatch.delenv("PHOENIX_API_KEY", raising=False)
    monkeypatch.delenv("PHOENIX_PROJECT_NAME", raising=False)
    hit = Hit(passage=Passage(id="p1", text="Zana"), score=1.0)
    step = Step(
        index=0, name="look", kind="retrieve", query="q", ranked=(hit,), started=NOW, seconds=0
    )
    run = Run(
        id="r1",
        question=Question(text="Where?", answers=("Zana",)),
        workflow="naive",
        steps=(step,),
        answer="Zana",
        started=NOW,
    )
    with Store.open(tmp_path / "runs.db") as store:
        store.save(run)
    with phoenix() as running:
        monkeypatch.setenv("HOPSCOPE_SERVICE_URL", running.url)
        yield running


def test_a_run_goes_there_and_its_labels_come_back(
    server: Phoenix, capsys: pytest.CaptureFixture[str]
) -> None:
    where = f"phoenix at {server.url}, project hopscope"
    code, out, _ = call(capsys, "push", "phoenix", "r1", "--dry-run")
    assert (code, out) == (0, f"1 trace, 2 annotations would be sent to {where} in 2 requests\n")
    server.refuses = "f1"
    code, out, err = call(capsys, "push", "phoenix", "last")
    assert (code, out) == (1, f"1 trace, 1 annotation sent to {where}\n1 failed\n")
    assert "not sent: f1 of a span of run r1: " in err
    server.refuses = ""
    code, out, _ = call(capsys, "push", "phoenix", "r1", "--json")
    told = json.loads(out)
    assert (code, told["sent"], told["known"]) == (0, {"note": 1}, {"trace": 1, "note": 1})
    [retriever] = (id for id, span in server.spans.items() if "retrieval" in span["name"])
    server.documents[retriever, "relevant", 0] = {
        "annotator_kind": "HUMAN",
        "result": {"label": "yes"},
    }
    code, out, _ = call(capsys, "pull", "phoenix", "r1")
    assert (code, out) == (0, f"1 label of 1 run in {where}: 1 new or changed\n")
    code, out, _ = call(capsys, "labels", "r1", "--json")
    listed, agreed = json.loads(out)
    [row] = listed["rows"]
    assert (code, row["of"], row["label"], row["source"]) == (0, "step 0: p1", "yes", "phoenix")
    assert row["credit"]["reason"] == "no credit was measured for it"
    assert agreed["rows"] == []


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("push", "phoenix", "nothing"), "no run or experiment 'nothing'"),
        (("pull", "nobody", "r1"), "no 'nobody' among services: choose from langfuse, mlflow"),
        (("labels", "r1"), "none of these runs has a label"),
    ],
)
def test_wrong_use_is_told(
    server: Phoenix,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
    told: str,
) -> None:
    code, _, err = call(capsys, *command)
    assert code == 2
    assert told in err
