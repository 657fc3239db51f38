"""Commands that only read make no database, and say what is wrong with what they are told."""

from pathlib import Path

import pytest

from hopscope.cli.main import main
from hopscope.store.store import Store

READING = [
    ["ls"],
    ["show"],
    ["credit"],
    ["score"],
    ["errors"],
    ["erag"],
    ["compare", "first"],
    ["gate", "first", "--baseline", "second"],
    ["gate", "first", "--write", "baseline.json"],
    ["export", "rows", "first", "--out", "out"],
    ["export", "trec", "first", "--out", "out"],
    ["export", "preferences", "first", "--out", "out"],
    ["budget", "explain"],
    ["budget", "fit", "--from", "first", "--out", "policy.json", "--budget", "tokens=9"],
    ["budget", "frontier", "first"],
    ["eval", "--from", "first"],
    ["db", "check"],
    ["db", "vacuum"],
    ["db", "export", "runs.jsonl"],
]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command, in this process."""
    code = 0
    try:
        main(list(arguments))
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    return code, *capsys.readouterr()


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_a_database_that_is_not_there_is_not_made(
    arguments: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mistyped --db left an empty database behind, and the command said there were no runs."""
    monkeypatch.chdir(tmp_path)
    missing = tmp_path / "folder" / "mistyped.db"
    code, out, err = call(capsys, *arguments, "--db", str(missing))
    assert (code, out) == (2, "")
    assert f"no runs are kept in {missing}" in err
    assert "--db or HOPSCOPE_DB" in err
    assert list(tmp_path.iterdir()) == []


def test_doctor_makes_no_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "mistyped.db"
    code, out, _ = call(capsys, "doctor", "--json", "--db", str(missing))
    assert code == 0
    assert f"no runs are kept in {missing}" in out
    assert not missing.exists()


def test_a_file_without_our_tables_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    code, _, err = call(capsys, "ls", "--db", str(empty))
    assert code == 2
    assert "no runs are kept in" in err
    assert empty.stat().st_size == 0


@pytest.mark.parametrize("command", ["show", "credit", "score", "errors", "erag"])
@pytest.mark.parametrize("known", [False, True])
def test_an_unknown_run_is_wrong_use_as_an_unknown_experiment_is(
    command: str, known: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was exit code 1, as if something had failed."""
    db = tmp_path / "runs.db"
    Store.open(db).close()
    code, out, err = call(capsys, command, *(["nonesuch"] if known else []), "--db", str(db))
    assert (code, out) == (2, "")
    assert "no run" in err
