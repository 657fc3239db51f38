"""`hopscope show --without` and `--interactions`, and `hopscope credit --without`."""

import json
from pathlib import Path
from typing import Any

import pytest

from hopscope.cli.main import main
from tests.cli.commands.test_credit_command import call

DEMO = ("demo", "3", "--samples", "4", "--json")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("what_if") / "runs.db"
    with pytest.raises(SystemExit):
        main([*DEMO, "--db", str(path)])
    return ["--db", str(path)]


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code, out, err = call(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_show_tells_the_size_of_the_stored_values(
    database: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    kept = ask(capsys, "show", *database)["appraisal"]["coalitions"]
    assert kept["stored"] == kept["measured"] > 0
    assert 20 * kept["stored"] < kept["bytes"] < 200 * kept["stored"]
    code, out, _ = call(capsys, "show", *database)
    assert code == 0
    assert f"{kept['stored']} coalition values stored, {kept['bytes'] / 1000:.1f} kB" in out


def test_without_a_part_that_was_not_measured_names_the_command_that_does(
    database: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The command it names works and then the value is there."""
    steps = ask(capsys, "show", *database)["steps"]
    [step, *_] = [s for s in steps if sum(p["new"] for p in s["passages"]) > 1]
    [key, *_] = [p["id"] for p in step["passages"] if p["new"]]
    parts = ["--without", f"p:{key}"]
    before = ask(capsys, "show", *parts, *database)
    [missing] = [row for row in before["without"] if row["meter"] == "seper"]
    assert (missing["value"], missing["difference"]) == (None, None)
    assert missing["full"] is not None
    command = missing["reason"].split("`")[1].split()
    assert command[:2] == ["hopscope", "credit"]
    measured = ask(capsys, *command[1:], *database)
    shown = ask(capsys, "show", *parts, *database)
    assert measured == shown
    [told] = [row for row in shown["without"] if row["meter"] == "seper"]
    assert told["reason"] is None
    assert told["low"] <= told["value"] <= told["high"]
    assert told["difference"] == pytest.approx(told["value"] - told["full"], abs=1e-12)
    code, out, _ = call(capsys, "show", *parts, *database)
    assert code == 0
    assert f"without p:{key}" in out


def test_interactions_are_printed(database: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    rows = ask(capsys, "show", "--interactions", "steps", *database)["interactions"]
    assert {row["meter"] for row in rows} >= {"seper", "grogu"}
    code, out, _ = call(capsys, "show", "--interactions", "steps", *database)
    assert code == 0
    assert "interaction" in out


def test_runs_of_experiments_have_values_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--db", str(tmp_path / "runs.db")]
    settings = ["-w", "naive", "--limit", "1", "--samples", "2", "--name", "e"]
    code, _, err = call(capsys, "eval", "hopland:dev", *settings, *place)
    assert code == 0, err
    rows = ask(capsys, "show", "--without", "0", *place)["without"]
    assert all(row["difference"] is not None for row in rows if row["meter"] == "seper")


@pytest.mark.parametrize("name", ["99", "9" * 5000, "-1"])
def test_a_part_that_is_not_there_is_a_usage_error(
    name: str, database: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(capsys, "show", "--without", name, *database)
    assert code == 2
    assert "names no step of the run: give a number from 0 to" in err


def test_replay_is_measured_by_rules(
    database: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(capsys, "credit", "--without", "0", "--mode", "replay", *database)
    assert code == 2
    assert "--mode frozen" in err
