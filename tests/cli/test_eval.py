"""Whole datasets: what is killed goes on and ends like an unbroken one, what fails is a row."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from hopscope.api import parts
from hopscope.cli.main import main
from hopscope.lab.experiments import workers
from hopscope.store.store import Store
from hopscope.tracing.learned.classifier_file import ClassifierFile
from tests.models import tiny_llama
from tests.servers import scripted_api

HOPSCOPE = [sys.executable, "-m", "hopscope.cli"]
ASKED = 30


class Bare(NamedTuple):
    """What an experiment needs, small and quick."""

    model: Path
    index: Path
    data: Path

    def command(
        self, database: Path, *more: str, data: Path | None = None, reader: str = ""
    ) -> list[str]:
        return [
            "eval", str(data or self.data), "--reader", reader or f"hf:{self.model}",
            "--corpus", str(self.index), "--samples", "2", "--meter", "seper",
            "--rule", "trajectory", "--db", str(database), "--name", "towns", "--order", "file",
            *more,
        ]  # fmt: skip


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Bare:
    folder = tmp_path_factory.mktemp("eval")
    model = tiny_llama(folder / "model", max_position_embeddings=1024)
    index(folder, "Alba is a film directed by Bruno Costa.")
    data = folder / "asked.jsonl"
    data.write_text(
        "".join(
            json.dumps(
                {"id": f"q{i}", "question": f"Who directed film {i}?", "golden_answers": ["Bruno"]}
            )
            + "\n"
            for i in range(ASKED)
        )
    )
    return Bare(model, folder / "index", data)


def index(folder: Path, text: str) -> None:
    corpus = folder / "corpus.jsonl"
    corpus.write_text(json.dumps({"id": "a", "title": "Alba", "text": text}) + "\n")
    with pytest.raises(SystemExit) as end:
        main(["index", "build", str(corpus), "--out", str(folder / "index"), "--overwrite"])
    assert not end.value.code


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command; its workers are processes all the same."""
    capsys.readouterr()
    code = 0
    try:
        main(list(arguments))
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    return code, *capsys.readouterr()


def timeless(text: str) -> str:
    """JSON as it was printed, without the times in it."""
    return re.sub(r'"(created|seconds)": [^,\n]+', r'"\1": 0', text)


def done(database: Path) -> int:
    if not database.exists():
        return 0
    with closing(sqlite3.connect(database)) as connection:
        try:
            [(count,)] = connection.execute("SELECT count(*) FROM items WHERE status = 'ok'")
        except sqlite3.OperationalError:  # the tables are not there yet
            return 0
    return int(count)


class Pace:
    """Holds the answers of a server from when so many items are done, so that a command cannot
    finish before it is stopped."""

    def __init__(self, database: Path) -> None:
        self.database, self.items = database, ASKED
        self.free = threading.Event()
        self.free.set()

    def __call__(self) -> None:
        if done(self.database) >= self.items:
            self.free.wait(timeout=600)


def stopped_at(command: list[str], pace: Pace, items: int, by: signal.Signals) -> str:
    """Start it in a process group of its own, end that when so many items are done; its stderr.
    Of SIGKILL only the command learns, so that its workers have to find out by themselves."""
    pace.items, database = items, pace.database
    pace.free.clear()
    running = subprocess.Popen(
        [*HOPSCOPE, *command], stderr=subprocess.PIPE, text=True, start_new_session=True,
        # A shell starts background jobs with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    deadline = time.monotonic() + 600
    while done(database) < items:
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)
    if by is signal.SIGKILL:
        running.kill()
    else:
        os.killpg(running.pid, by)
    pace.items = ASKED
    pace.free.set()
    _, told = running.communicate(timeout=600)  # also waits for the workers, who have the pipe
    assert running.returncode == (130 if by is signal.SIGINT else -by), told
    assert done(database) < ASKED, "it had finished before it was stopped"
    return told


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Pace]]:
    """A reader on a server, and its pace."""
    pace = Pace(tmp_path / "broken.db")
    with scripted_api.naming("Bruno", pace) as reader:
        yield reader, pace


def test_what_is_stopped_twice_ends_like_an_unbroken_one(
    bare: Bare,
    served: tuple[str, Pace],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing is lost and nothing doubled; after Ctrl-C nothing is left half done. The model is on
    a server, which spares the processes a library of models."""
    options = ["-w", "closed_book:max_tokens=24", "--threads", "1", "--json"]
    code, whole, _ = call(capsys, *bare.command(tmp_path / "whole.db", *options, reader=served[0]))
    assert code == 0

    pace = served[1]
    database = pace.database
    command = bare.command(database, *options, "--workers", "2", reader=served[0])
    stopped_at(command, pace, 3, signal.SIGKILL)
    told = stopped_at(command, pace, 12, signal.SIGINT)
    assert "the same command resumes" in told
    with Store.open(database) as store:
        progress = store.experiments.progress("towns")
        assert (progress.running, progress.total) == (0, ASKED)
        assert [s.ended is not None for s in store.experiments.worker_sessions("towns")] == [
            True
        ] * 2

    code, ended, _ = call(capsys, *command)
    assert code == 0
    assert timeless(ended) == timeless(whole)
    with Store.open(database) as store:
        assert len(store.runs(None)) == ASKED
        assert store.verify() == []
        assert {i.attempts for i in store.experiments.items("towns")} <= {1, 2, 3}
    code, again, told = call(capsys, *command)
    assert (code, again) == (0, ended)
    assert "nothing is left to do" in told


def test_a_question_that_fails_is_a_row_and_is_tried_again_when_asked(
    bare: Bare, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, database = tmp_path / "some.jsonl", tmp_path / "runs.db"
    rows = [{"question": "Who?"}, {"question": "Who? " * 2000}, {"question": "Who else?"}]
    data.write_text("".join(json.dumps({"id": i, **row}) + "\n" for i, row in enumerate(rows)))
    command = bare.command(database, "-w", "closed_book", data=data)
    code, out, told = call(capsys, *command)
    assert code == 1, told
    assert re.search(r"closed_book\s+3/3\s+1\b", out)
    assert "1 x ContextOverflowError: a prompt of" in told
    assert "3 of 3 done, 1 failed" in told
    with Store.open(database) as store:
        items = store.experiments.items("towns")
        assert [i.status for i in items] == ["ok", "failed", "ok"]
        assert items[1].error is not None
        assert items[1].error.type == "ContextOverflowError"

    assert call(capsys, *command)[0] == 1
    code, _, told = call(capsys, *command, "--retry-failed")
    assert code == 1
    with Store.open(database) as store:
        again = store.experiments.items("towns")
        assert [i.attempts for i in again] == [1, 2, 1]
        assert (again[0], again[2]) == (items[0], items[2])
        assert len(store.runs(None)) == 3


def test_it_goes_on_only_with_what_it_was_begun_with_but_may_grow(
    bare: Bare, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "runs.db"
    command = bare.command(database, "--limit", "1", "-w", "closed_book")
    assert call(capsys, *command)[0] == 0
    for change, what in (
        (["--seed", "5"], "seed 0 and cannot continue with 5"),
        (["--samples", "3"], "samples 2"),
        (["--meter", "grogu"], "meters"),
        (["-o", "max_tokens=5"], "closed_book began with max_tokens 32 and"),
        (["-o", "max_tokens=5", "--dry-run"], "closed_book began with max_tokens 32 and"),
        (
            ["--policy", "never"],
            "no policy, no limits and cannot continue with policy 'n",
        ),
    ):
        code, _, told = call(capsys, *command, *change)
        assert (code, what in told, "another name (--name)" in told) == (2, True, True), told

    index(bare.index.parent, "Alba is a film directed by somebody else.")
    code, _, told = call(capsys, *bare.command(database, "--limit", "2", "-w", "closed_book"))
    index(bare.index.parent, "Alba is a film directed by Bruno Costa.")
    assert (code, told.count("bm25:")) == (2, 2), told

    more = ["--limit", "2", "-w", "closed_book", "-w", "naive:k=1", "--json"]
    code, out, _ = call(capsys, *bare.command(database, *more))
    assert code == 0
    rows = [(row["id"], row["workflow"], row["status"]) for row in json.loads(out)["items"]]
    assert rows == [
        ("q0", "closed_book", "ok"),
        ("q0", "naive:k=1", "ok"),
        ("q1", "closed_book", "ok"),
        ("q1", "naive:k=1", "ok"),
    ]


def test_who_stops_while_the_models_load_is_told_whether_anything_is_kept(
    bare: Bare, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said that what was done is kept before there was an experiment."""
    command = bare.command(tmp_path / "runs.db", "-w", "closed_book", "--limit", "1")

    def stopped() -> tuple[int, str]:
        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(workers.Pool, "first", interrupted)
            code, _, told = call(capsys, *command, "--limit", "2")
        return code, told

    code, told = stopped()
    assert (code, "nothing is kept" in told, "resumes" in told) == (130, True, False), told
    assert call(capsys, *command)[0] == 0
    code, told = stopped()
    assert (code, "finished items are kept; the same command resumes" in told) == (130, True), told


def test_a_deterministic_one_is_the_same_to_the_last_byte_and_can_be_repeated(
    bare: Bare, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However many workers share it, and whichever of them answers what."""
    options = ["--limit", "4", "-w", "naive", "--deterministic", "--json"]
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    code, one, _ = call(capsys, *bare.command(first, *options))
    assert code == 0
    code, two, _ = call(capsys, *bare.command(second, *options, "--workers", "2"))
    assert (code, timeless(two)) == (0, timeless(one))

    repeat = ["eval", "--from", "towns", "--db", str(first), "--json"]
    code, again, _ = call(capsys, *repeat)
    named = timeless(again).replace("towns-again", "towns")
    ids = re.compile(r'"id": "[0-9a-f]{32}"')
    assert (code, ids.sub("", named)) == (0, ids.sub("", timeless(one)))
    for more, flag in (
        (["--reader", "tiny"], "--reader"),
        (["-k", "3"], "-k"),
        (["-o", "k=3"], "-o"),
    ):
        code, _, told = call(capsys, *repeat, *more)
        assert (code, f" {flag} does not go with --from" in told) == (2, True), told
    with Store.open(first) as store:
        [session] = store.experiments.worker_sessions("towns-again")
        assert session.environment["versions"]["hopscope"]  # type: ignore[index,call-overload]
        assert session.environment["hardware"]["workers"] == 1  # type: ignore[index,call-overload]


def test_each_arm_keeps_its_policy_and_limits_and_goes_on_with_no_others(
    bare: Bare, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An arm whose policy or limit changed on the way would mix two systems in one row."""
    database = tmp_path / "runs.db"
    prices = tmp_path / "prices.toml"
    prices.write_text('[models]\n"model@*" = { input = 1000, output = 1000 }\n')
    arms = ["--limit", "1", "-w", "naive:k=1", "-w", "naive:policy=never"]
    command = bare.command(database, *arms, "--max-cost", "50", "--prices", str(prices))
    code, out, told = call(capsys, *command, "--policy", "fixed:1", "--json")
    assert code == 0, told
    with Store.open(database) as store:
        runs = [store.load(row["run"]["id"]) for row in json.loads(out)["items"]]
        fixed, never = ([s.decision for s in run.steps if s.decision] for run in runs)
        kept = [arm.settings["spending"] for arm in store.experiments.find("towns").arms]
    assert [(d.policy, d.retrieve) for d in fixed] == [("fixed:1", True)]
    assert [(d.policy, d.retrieve) for d in never] == [("never", False)]
    assert [each["limits"]["cost"] for each in kept] == [50.0, 50.0]  # type: ignore[index,call-overload]

    prices.write_text('[models]\n"model@*" = { input = 1, output = 1000 }\n')
    cheaper = call(capsys, *command, "--policy", "fixed:1")
    prices.write_text('[models]\n"model@*" = { input = 1000, output = 1000 }\n')
    other = call(capsys, *command, "--policy", "fixed:2")
    more = call(capsys, *command, "--policy", "fixed:1", "--max-calls", "9")
    for code, _, told in (cheaper, other, more):
        assert (code, "naive:k=1 began with" in told) == (2, True), told
    assert call(capsys, *command, "--policy", "fixed:1")[0] == 0

    repeat = ["eval", "--from", "towns", "--db", str(database), "--json"]
    code, out, _ = call(capsys, *repeat)
    assert code == 0
    with Store.open(database) as store:
        again = [store.load(row["run"]["id"]) for row in json.loads(out)["items"]]
    assert [[s.decision for s in run.steps if s.decision] for run in again] == [fixed, never]


def test_limits_hold_for_each_question(
    bare: Bare, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = bare.command(tmp_path / "runs.db", "--limit", "2", "-w", "naive", "--json")
    code, out, _ = call(capsys, *command, "--max-retrievals", "0")
    assert code == 0
    assert [row["run"]["stop_reason"] for row in json.loads(out)["items"]] == [
        "budget_retrievals"
    ] * 2


def test_a_learned_policy_is_refused_where_it_does_not_fit_or_has_changed(
    bare: Bare, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database, file = tmp_path / "runs.db", tmp_path / "policy.json"
    reader = parts.reader(f"hf:{bare.model}").name
    learned = ClassifierFile(
        workflow="naive",
        reader=reader,
        classes=(0, 1),
        intercepts=(0.0, 1.0),
        weights={},
    )
    file.write_text(learned.model_dump_json())
    command = bare.command(database, "--limit", "1", "--policy", f"classifier:{file}")
    code, _, told = call(capsys, *command, "-w", "ircot")
    assert (code, "learned for the workflow naive and does not fit ircot" in told) == (2, True)
    with Store.open(database) as store:
        assert store.experiments.all() == []
    assert call(capsys, *command, "-w", "naive")[0] == 0
    file.write_text(learned.model_copy(update={"intercepts": (1.0, 0.0)}).model_dump_json())
    code, _, told = call(capsys, *command, "-w", "naive")
    assert (code, "naive began with" in told) == (2, True), told
    code, _, told = call(capsys, "eval", "--from", "towns", "--db", str(database))
    assert (code, "its file has changed; restore it" in told) == (2, True), told


def test_a_dry_run_tells_the_cost_and_keeps_nothing(
    bare: Bare, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "runs.db"
    arms = ["-w", "closed_book", "-w", "naive", "--threads", "4", "--workers", "9"]
    command = bare.command(database, *arms, "--dry-run", "--json")
    code, out, told = call(capsys, *command)
    assert code == 0
    assert re.search(r"memory: \d\.\d GB per worker .*, \d+\.\d GB for 9; .*prefix_cache", told)
    closed, naive = json.loads(out)["estimates"]
    assert (closed["arm"], closed["items"], closed["n"]) == ("closed_book", ASKED, 4)
    # One call to answer and one for each belief: without evidence, and with what was retrieved.
    assert (closed["calls"], naive["calls"]) == (ASKED * 2, ASKED * 3)
    assert naive["input_tokens"] > closed["input_tokens"] > 0
    assert not database.exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (["--sample-id", "q99"], "no question 'q99' in asked"),
        (["-w", "naive:depth=3"], "unknown option 'depth'"),
        (["-w", "ircot", "-w", "naive:zz=1"], "workflow naive:zz=1: unknown option 'zz'"),
        (["-w", "ircot", "-w", "naive:k=x"], "workflow naive:k=x: option k=x: give a whole"),
        (
            ["-w", "ircot", "-w", "naive:policy=margin:2"],
            "workflow naive:policy=margin:2: margin:2: option threshold=2: give 1.0 or less",
        ),
        (["-w", "naive", "--policy", "margin:2"], "hopscope: margin:2: option threshold=2"),
        (["-w", "nowhere"], "no 'nowhere' among workflows"),
        (["-w", "naive", "-w", "naive"], "given twice"),
        (["-w", "closed_book", "-o", "k=3"], "has an option 'k'"),
        (["--meter", "nothing"], "no 'nothing' among meters"),
        (["--rule", "leave-one-out", "--rule", "nothing"], "no 'nothing' among rules"),
        (["-o", "seper.what=3"], "unknown option 'what'"),
        (["--corpus", "rrf(a"], "character 6: expected"),
        (["--policy", "nowhere"], "no 'nowhere' among policies"),
        (["-w", "naive:policy=margin:x"], "option threshold=x"),
        (["--policy", "value:nowhere.json"], "nowhere.json cannot be read"),
        (["--max-cost", "1"], "a limit in money needs the price of model@"),
    ],
)
def test_what_is_wrong_is_told_before_anything_begins(
    bare: Bare, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: list[str], told: str
) -> None:
    code, _, said = call(capsys, *bare.command(tmp_path / "runs.db", *change))
    assert (code, told in said) == (2, True), said


def test_items_in_the_hands_of_another_command_are_told_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said only that they are "with another command", below a table of no items."""
    db = tmp_path / "runs.db"
    command = ("eval", "hopland:dev", "-w", "closed_book", "--meter", "none", "--name", "both")
    assert call(capsys, *command, "--limit", "1", "--db", str(db))[0] == 0
    with closing(sqlite3.connect(db)) as connection:
        connection.execute("UPDATE items SET status = 'pending'")
        connection.commit()
    with Store.open(db) as store:
        own = store.experiments.begin_session("both", owner="elsewhere/1/0", environment={})
        assert len(store.experiments.claim(own, 5)) == 1
        code, _, err = call(capsys, *command, "--limit", "1", "--db", str(db))
    assert code == 0, err
    told = " ".join(err.split())
    assert "1 question is with another command" in told
    assert "wait for its end, then look with `hopscope compare both`" in told


def test_broken_data_are_told_with_their_line(
    bare: Bare, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "broken.jsonl"
    data.write_text('{"question": "Who?"}\n\n{"question": 3}\n')
    code, _, said = call(capsys, *bare.command(tmp_path / "runs.db", data=data))
    assert code == 2
    assert re.search(r"broken\.jsonl, line 3: 'question' is 3; it must be a non-empty text", said)
    assert call(capsys, "eval")[0] == 2
    code, _, said = call(capsys, "eval", "hopland:train", "--db", str(tmp_path / "runs.db"))
    assert (code, "choose from hopland:dev, hopland:test" in said) == (2, True), said


def test_an_experiment_of_before_there_was_an_order_goes_on_as_it_was(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """New ones are stratified; a larger limit adds to the questions there are, in either order."""

    def asked(name: str, *more: str) -> list[int | None]:
        command = ("eval", "hopland:dev", "-w", "closed_book", "--meter", "none", "--name", name)
        code, _, err = call(capsys, *command, *more, "--db", str(tmp_path / "runs.db"))
        assert code == 0, err
        with Store.open(tmp_path / "runs.db") as store:
            return [item.entry.hops for item in store.experiments.items(name)]

    assert asked("old", "--limit", "2", "--order", "file") == [1, 1]
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        connection.execute("UPDATE experiments SET settings = json_remove(settings, '$.order')")
        connection.commit()
    assert asked("old", "--limit", "4") == [1, 1, 1, 1]
    few = asked("new", "--limit", "2")
    more = asked("new", "--limit", "4")
    assert more[:2] == few
    assert sorted(map(str, more)) == ["1", "2", "3", "4"]
    with Store.open(tmp_path / "runs.db") as store:
        assert store.experiments.find("new").settings["order"] == "stratified"
