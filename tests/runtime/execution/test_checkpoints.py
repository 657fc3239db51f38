"""What is kept of a run, and that it goes on only with what it was begun with."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hopscope.runtime import types
from hopscope.runtime.errors import ReaderError, UsageError
from hopscope.runtime.execution.checkpoints import Checkpoints, serializer, whole
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Generation, Passage, Question, Step
from hopscope.workflows import ircot, naive
from tests.fakes import passage, step
from tests.servers.otlp import recorded
from tests.talk import ScriptedRetriever, Talker

QUESTION = Question(text="Who?", answers=("Ada",))


@pytest.fixture
def checkpoints(tmp_path: Path) -> Iterator[Checkpoints]:
    with Checkpoints.open(tmp_path / "checkpoints") as opened:
        yield opened


def deps(*replies: str | Exception, **options: Any) -> Deps:
    retriever = ScriptedRetriever(lambda query: [passage("a")])
    return Deps(reader=Talker(replies), retriever=retriever, **options)


def workflow(**options: Any) -> Workflow:
    return Workflow("naive", naive.build(**options), options)


def test_damage_is_found_and_told(tmp_path: Path) -> None:
    """Every byte of a state is hashed: LangGraph makes something else of what it cannot read."""
    path = tmp_path / "checkpoints"
    with Checkpoints.open(path) as opened:
        run(workflow(), QUESTION, deps("Ada"), checkpointer=opened.saver, run_id="one")
    with closing(sqlite3.connect(path)) as connection:
        [(state,)] = connection.execute("SELECT checkpoint FROM checkpoints")
    for at in (0, 40, len(state) // 2, len(state) - 1):
        damaged = bytearray(state)
        damaged[at] ^= 4
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE checkpoints SET checkpoint = ?", (bytes(damaged),))
        with Checkpoints.open(path) as opened, pytest.raises(UsageError, match="are damaged"):
            run(workflow(), QUESTION, deps("Ada"), checkpointer=opened.saver, run_id="one")


def test_another_program_s_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (address TEXT)")
    with pytest.raises(UsageError, match="another program's database"):
        Checkpoints.open(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]


def test_what_is_read_back_equals_what_was_written() -> None:
    """Lists in place of tuples would be told apart only by a workflow that adds to them."""
    state = {
        "evidence": (passage("a"),),
        "ballots": (("a", "b"), ()),
        "steps": [step(0, ["a"], evidence=(passage("a"),))],
        "draft": Generation(text="x", tokens=("x",), logprobs=(-0.5,)),
        "none": None,
    }
    kept = serializer()
    found = kept.loads_typed(kept.dumps_typed(state))
    assert found == state
    assert type(found["ballots"][0]) is tuple


def test_a_file_of_the_time_when_the_records_were_one_module_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LangGraph writes the module of each record, and reads one that it does not know as a dict."""
    state = {"question": QUESTION, "evidence": (passage("a"),), "steps": [step(0, ["a"])]}
    with monkeypatch.context() as before:
        for kind in (Question, Passage, Step):
            before.setattr(kind, "__module__", types.__name__)
        old = serializer().dumps_typed(state)
    assert b"hopscope.runtime.types." not in old[1]
    assert serializer().loads_typed(old) == state


def test_a_failed_run_goes_on_with_the_step_that_failed(checkpoints: Checkpoints) -> None:
    saver = checkpoints.saver
    broken = deps(ReaderError("out of memory"))
    first = run(workflow(), QUESTION, broken, checkpointer=saver, run_id="a")
    assert (first.status, [s.name for s in first.steps]) == ("failed", ["retrieve"])
    mended = deps("Ada")
    second = run(workflow(), QUESTION, mended, checkpointer=saver, run_id="a")
    assert (second.id, second.status, second.answer) == ("a", "ok", "Ada")
    assert first.steps[0].dangling == ("a",)
    assert second.steps[0] == first.steps[0].model_copy(update={"dangling": ()})
    assert second.started == first.started
    assert [s.index for s in second.steps] == [0, 1]
    assert mended.retriever.queries == []  # type: ignore[attr-defined]  # of the fake


def test_a_finished_run_asks_nothing_again(checkpoints: Checkpoints) -> None:
    saver = checkpoints.saver
    first = run(workflow(), QUESTION, deps("Ada"), checkpointer=saver, run_id="a")
    again = run(workflow(), QUESTION, deps(), checkpointer=saver, run_id="a")
    assert again.model_copy(update={"seconds": first.seconds}) == first


def test_a_file_grows_with_the_steps_and_not_with_their_square(tmp_path: Path) -> None:
    """Each state holds all steps so far; if none were dropped, four times the steps would take
    sixteen times the space. What a state takes beside the steps only helps."""

    def size(rounds: int) -> int:
        path = tmp_path / str(rounds)
        replies = [f"Thought {i}. {'word ' * 2000}" for i in range(rounds - 1)]
        asked = deps(*replies, "So the answer is: Ada.")
        looping = Workflow("ircot", ircot.build(max_steps=rounds), {})
        with Checkpoints.open(path) as opened:
            done = run(looping, QUESTION, asked, checkpointer=opened.saver, run_id="a")
        assert len(done.steps) >= 2 * rounds
        return path.stat().st_size

    assert size(24) < 6 * size(6)


def test_runs_in_one_file_do_not_meet(checkpoints: Checkpoints) -> None:
    saver = checkpoints.saver
    for run_id, said in (("a", "Ada"), ("b", "Bea")):
        assert run(
            workflow(), QUESTION, deps(said), checkpointer=saver, run_id=run_id
        ).answer == said  # fmt: skip


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seed": 3}, "seed 0 and cannot continue with 3"),
        ({"question": Question(text="Where?")}, r"'Who\?'.*'Where\?'"),
        ({"reader": "other"}, "reader 'scripted' and cannot continue with 'other'"),
        ({"retriever": "other"}, "retriever 'scripted' and cannot continue with 'other'"),
        ({"options": {"k": 3}}, "options {} and cannot continue with {'k': 3}"),
    ],
)
def test_it_goes_on_only_with_what_it_was_begun_with(
    checkpoints: Checkpoints, change: dict[str, Any], told: str
) -> None:
    saver = checkpoints.saver
    run(workflow(), QUESTION, deps(ReaderError("no")), checkpointer=saver, run_id="a")
    other = deps("Ada", seed=change.get("seed", 0))
    for port in ("reader", "retriever"):
        if port in change:
            getattr(other, port).name = change[port]
    with pytest.raises(UsageError, match=told):
        run(
            workflow(**change.get("options", {})), change.get("question", QUESTION), other,
            checkpointer=saver, run_id="a",
        )  # fmt: skip


def test_runs_are_found_by_the_beginning_of_their_id(checkpoints: Checkpoints) -> None:
    ids = [checkpoints.begin(f"settings {i}") for i in range(2)]
    assert checkpoints.find(ids[0][:12]) == (ids[0], "settings 0")
    assert checkpoints.find() == (ids[1], "settings 1")
    with pytest.raises(UsageError, match="2 runs begin"):
        checkpoints.find("")
    with pytest.raises(UsageError, match="no run xyz"):
        checkpoints.find("xyz")


def test_a_file_that_holds_no_checkpoints_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no database " * 100)
    with pytest.raises(UsageError, match="cannot be used"):
        Checkpoints.open(text)
    with pytest.raises(UsageError, match="no checkpoints at"):
        Checkpoints.open(tmp_path / "none", create=False)
    with pytest.raises(UsageError, match="cannot be used"):
        Checkpoints.open(tmp_path / "no" / "folder")


def test_the_parts_of_a_run_are_one_trace(checkpoints: Checkpoints) -> None:
    """Credits link to the spans of steps by the run's trace."""
    saver = checkpoints.saver
    with recorded() as seen:
        broken = deps(ReaderError("no"))
        first = run(workflow(), QUESTION, broken, checkpointer=saver, run_id="a")
        second = run(workflow(), QUESTION, deps("Ada"), checkpointer=saver, run_id="a")
        spans = seen.spans
    assert second.trace_id == first.trace_id != ""
    assert {span.context.trace_id for span in spans if span.context} == {int(first.trace_id, 16)}
    ids = {f"{span.context.span_id:016x}" for span in spans if span.context}
    assert {s.span_id for s in second.steps} <= ids


def test_a_file_in_use_is_not_said_to_be_damaged(tmp_path: Path) -> None:
    """The advice was to begin the run again."""
    path = tmp_path / "runs.checkpoints"
    with (
        closing(sqlite3.connect(path)) as writer,
        closing(sqlite3.connect(path, timeout=0)) as other,
    ):
        writer.execute("CREATE TABLE states (state)")
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UsageError, match="another process is using the checkpoints"), whole():
            other.execute("SELECT * FROM states")
