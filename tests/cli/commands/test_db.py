"""`hopscope db` on a real file: upgraded, checked, made small, exported."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from hopscope.cli.main import main
from hopscope.runtime.types import Question, Run, Step
from hopscope.store.database import migrate
from hopscope.store.database.database import Database
from hopscope.store.database.location import resolve
from hopscope.store.exporters import jsonl
from hopscope.store.store import HEAD, Store

STARTED = datetime(2026, 11, 21, tzinfo=UTC)


def a_run(run_id: str, *, output: str = "Ada") -> Run:
    step = Step(index=0, name="s", kind="generate", output=output, started=STARTED, seconds=0.1)
    return Run(
        id=run_id,
        question=Question(text="Who?"),
        workflow="closed_book",
        steps=(step,),
        answer="Ada",
        started=STARTED,
        seconds=0.1,
    )


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A database of two runs that every command here uses."""
    path = tmp_path / "runs.db"
    monkeypatch.setenv("HOPSCOPE_DB", str(path))
    with Store.open(path) as store:
        store.save_all([a_run("one"), a_run("two")])
    return path


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command of `hopscope db`."""
    try:
        main(["db", *arguments])
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    said = capsys.readouterr()
    return code, said.out, said.err


def test_upgrade_says_what_there_was(
    capsys: pytest.CaptureFixture[str], file: Path, tmp_path: Path
) -> None:
    assert call(capsys, "upgrade") == (0, f"{file} is up to date, at {HEAD}\n", "")
    new = str(tmp_path / "new.db")
    assert call(capsys, "upgrade", "--db", new) == (0, f"{new} is now at {HEAD}, and new\n", "")
    old = tmp_path / "old.db"
    database = Database(resolve(old))
    database.prepare()
    with database.migrating() as connection:
        migrate.run_alembic(connection, "m002")
    database.close()
    code, out, _ = call(capsys, "upgrade", "--json", "--db", str(old))
    assert (code, json.loads(out)) == (0, {"database": str(old), "before": "m002", "after": HEAD})


def test_check_tells_what_has_changed_and_fails(
    capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    assert call(capsys, "check") == (0, f"{file}: 2 runs, no faults\n", "")
    with Store.open(file) as store, store._database.writing() as connection:
        connection.execute(text("UPDATE runs SET status = 'fine' WHERE id = 'two'"))
    code, out, _ = call(capsys, "check")
    assert code == 1
    assert "runs two: the run or one of its steps has changed" in out
    assert f"{file}: 2 runs, 1 fault\n" in out
    code, out, _ = call(capsys, "check", "--json")
    assert (code, [fault["row"] for fault in json.loads(out)["faults"]]) == (1, ["two"])


def test_vacuum_gives_back_what_a_replaced_run_took(
    capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    with Store.open(file) as store:
        store.save(a_run("one", output="long " * 400_000))
        store.save(a_run("one"))
    code, out, _ = call(capsys, "vacuum", "--json")
    sizes = json.loads(out)
    assert code == 0
    assert sizes["before_bytes"] - sizes["after_bytes"] > 1_900_000
    assert file.stat().st_size == sizes["after_bytes"]
    with Store.open(file) as store:
        assert store.load("one") == a_run("one")


def test_export_writes_all_runs_or_those_named_and_over_no_file_unasked(
    capsys: pytest.CaptureFixture[str], file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    assert call(capsys, "export", str(out)) == (0, "", f"hopscope: 2 runs written to {out}\n")
    with out.open() as lines:
        assert [line.run for line in jsonl.read(lines)] == [a_run("one"), a_run("two")]
    code, _, err = call(capsys, "export", str(out))
    assert (code, err) == (
        2, f"hopscope: {out} is there already: give --overwrite, or another name to write to\n"
    )  # fmt: skip
    assert call(capsys, "export", str(out), "two", "--overwrite")[0] == 0
    assert [json.loads(line)["run"]["id"] for line in out.read_text().splitlines()] == ["two"]
    code, written, _ = call(capsys, "export", "-", "tw")
    assert (code, [json.loads(line)["run"]["id"] for line in written.splitlines()]) == (0, ["two"])


def test_export_knows_the_last_run_as_other_commands_do(
    capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    """The last is the one that was started last, not the one saved last."""
    with Store.open(file) as store:
        store.save(a_run("three").model_copy(update={"started": STARTED + timedelta(days=1)}))
        store.save(a_run("four"))
    code, written, _ = call(capsys, "export", "-", "last", "one")
    ids = [json.loads(line)["run"]["id"] for line in written.splitlines()]
    assert (code, ids) == (0, ["three", "one"])


def test_an_export_that_fails_leaves_nothing(
    capsys: pytest.CaptureFixture[str], file: Path, tmp_path: Path
) -> None:
    code, _, err = call(capsys, "export", str(tmp_path / "out.jsonl"), "one", "three")
    assert code == 2
    assert "no run 'three'" in err
    code, _, err = call(capsys, "export", str(file / "out.jsonl"))
    assert code == 2
    assert "cannot be written" in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["runs.db"]
