"""`hopscope.evaluate`: a dataset with the parts of a session, resumable, kept as the command keeps
it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

import hopscope
from hopscope.lab.experiments import engine
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Question

TEXTS = ["Elsa Wilby is employed by Salwin Pictures.", "Salwin Pictures is in Grand Rovmar."]
ASKED = [
    Question(text="What company employs Elsa Wilby?", answers=("Salwin Pictures",), id="one"),
    Question(text="Where is Salwin Pictures based?", answers=("Grand Rovmar",), id="two"),
]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[hopscope.Session]:
    with hopscope.Session(store=tmp_path / "runs.db", samples=2) as opened:
        yield opened


class State(TypedDict, total=False):
    question: str
    documents: list[str]
    answer: str


def graph() -> Any:
    made = StateGraph(State)
    made.add_node("find", lambda state: {"documents": TEXTS})
    made.add_node("tell", lambda state: {"answer": "Salwin Pictures"})
    made.add_edge(START, "find")
    made.add_edge("find", "tell")
    made.add_edge("tell", END)
    return made.compile(name="mine")


def test_parts_in_memory_are_evaluated_and_go_on(tmp_path: Path) -> None:
    asked: list[str] = []

    def find(query: str, k: int) -> list[str]:
        asked.append(query)
        return TEXTS

    with hopscope.Session(retriever=find, store=tmp_path / "runs.db", samples=2) as own:
        workflows = ["naive", graph()]
        found = hopscope.evaluate(own, ASKED, workflows=workflows, name="mine", limit=1)
        assert found.progress.ok == 2
        assert len(asked) == 1
        found = hopscope.evaluate(own, ASKED, workflows=workflows, name="mine", threads=2)
        assert (found.progress.ok, found.progress.total) == (4, 4)
        assert len(asked) == 2
        last = own.store.experiments.worker_sessions("mine")[-1].environment["hardware"]
        assert isinstance(last, dict)
        assert last["questions_per_worker"] == 2  # estimates of `hopscope eval` go by it
        hopscope.evaluate(own, ASKED, workflows=workflows, name="mine")
        assert len(asked) == 2
        rows = found.to_dicts()
        assert {row["workflow"] for row in rows} == {"naive", "graph:mine"}
        [row] = [r for r in rows if r["workflow"] == "graph:mine" and r["id"] == "one"]
        assert (row["answer"], row["status"], row["gold"]) == (
            "Salwin Pictures",
            "ok",
            ["Salwin Pictures"],
        )
        assert row["seper_total"] is not None
        assert len(list(found.runs())) == 4
        assert all(len(run.credits) for run in found.runs())
        assert "graph:mine" in found._repr_html_()


def test_the_command_goes_on_with_what_python_began(
    session: hopscope.Session, tmp_path: Path
) -> None:
    """The same settings and the same runs, whoever makes them."""
    file = tmp_path / "questions.jsonl"
    rows = [{"id": q.id, "question": q.text, "answers": list(q.answers)} for q in ASKED]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = hopscope.evaluate(session, file, workflows=["naive:k=2"], limit=1, options={"k": 3})
    begun = [row for row in found.to_dicts() if row["run"]]
    command = [sys.executable, "-m", "hopscope.cli", "eval", str(file), "-w", "naive:k=2"]
    places = ["--samples", "2", "--db", str(tmp_path / "runs.db"), "-o", "k=3", "--json"]
    done = subprocess.run([*command, *places], capture_output=True, text=True, check=True)
    printed = json.loads(done.stdout)
    assert printed["experiment"]["name"] == found.name == "questions"
    assert printed["progress"]["ok"] == 2
    ids = [item["run"]["id"] for item in printed["items"]]
    assert begun[0]["run"] in ids
    again = hopscope.evaluate(session, file, workflows=["naive:k=2"], options={"k": 3})
    assert [run.record.options["k"] for run in again.runs()] == [2, 2]


def test_ctrl_c_keeps_what_is_done_and_is_raised(
    session: hopscope.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = engine.Stop

    def asked_at_once(told: Any) -> engine.Stop:
        stop = real(told)
        stop(2, None)
        return stop

    monkeypatch.setattr(engine, "Stop", asked_at_once)
    with pytest.raises(KeyboardInterrupt, match="0 of 2 are done and kept"):
        hopscope.evaluate(session, ASKED, workflows=["naive"], name="stopped")
    monkeypatch.undo()
    found = hopscope.evaluate(session, ASKED, workflows=["naive"], name="stopped")
    assert found.progress.ok == 2


def test_a_run_that_fails_is_a_row(tmp_path: Path) -> None:
    calls = 0

    def flaky(query: str, k: int) -> list[str]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("no network")
        return TEXTS

    with hopscope.Session(
        retriever=flaky, store=tmp_path / "runs.db", meters=[], workflow="naive"
    ) as own:
        found = hopscope.evaluate(own, ASKED, name="flaky")
        assert (found.progress.failed, found.progress.ok) == (1, 1)
        [error] = [row["error"] for row in found.to_dicts() if row["error"]]
        assert "no network" in error
        found = hopscope.evaluate(own, ASKED, name="flaky", retry_failed=True)
        assert (found.progress.failed, found.progress.ok) == (0, 2)


def test_what_cannot_be_evaluated_is_refused(session: hopscope.Session) -> None:
    with pytest.raises(UsageError, match="needs a name"):
        hopscope.evaluate(session, ASKED)
    with pytest.raises(UsageError, match="no question"):
        hopscope.evaluate(session, [], name="empty")
    with pytest.raises(UsageError, match="two questions have the id 'one'"):
        hopscope.evaluate(session, [ASKED[0], ASKED[0]], name="twice")
    with pytest.raises(UsageError, match="given twice"):
        hopscope.evaluate(session, ASKED, workflows=[graph(), graph()], name="twice")
    with pytest.raises(UsageError, match="choose from"):
        hopscope.evaluate(session, ASKED, workflows=["naif"], name="typo")
    assert session.store.experiments.known("twice") is None
