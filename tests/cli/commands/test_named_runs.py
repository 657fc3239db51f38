"""Commands over stored runs take what others do: ids, experiments, workflows, golds."""

import json
from pathlib import Path

import pytest

from hopscope.runtime.types import Question, Run
from hopscope.store.store import Store
from tests.cli.experiment_example import QUESTIONS, call, fill, make_runs


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return make_runs()


@pytest.fixture(scope="module")
def database(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    file = tmp_path_factory.mktemp("named") / "runs.db"
    fill(file, runs)
    with Store.open(file) as store:
        store.save(runs[0].model_copy(update={"id": "f" * 32}))  # of no experiment
    return ["--db", str(file)]


@pytest.mark.parametrize("command", ["score", "errors", "erag"])
def test_an_experiment_stands_for_its_runs(
    command: str, database: list[str], runs: list[Run], capsys: pytest.CaptureFixture[str]
) -> None:
    """compare, credit and export took its name, these said that there was no such run."""

    def ids(*arguments: str) -> list[str]:
        code, out, err = call(capsys, command, *arguments, "--json", *database)
        assert code == 0, err
        return [row["id"] for row in json.loads(out)["runs"]]

    assert ids("done") == [run.id for run in runs]
    naive = [run.id for run in runs if run.workflow == "naive"]
    assert ids("done", "-w", "naive") == naive
    assert ids("done", "-w", "naive", "--limit", "1") == naive[-1:]
    assert ids("done", runs[0].id, "f" * 32) == [*[run.id for run in runs], "f" * 32]


def test_an_experiment_without_runs_says_so(
    database: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(capsys, "score", "begun", *database)
    assert (code, out) == (2, "")
    assert "experiment begun has answered no question yet" in err
    code, _, err = call(capsys, "score", "done", "-w", "ircot", *database)
    assert code == 2
    assert "experiment done has answered no question by ircot yet" in err


def test_ls_lists_the_runs_of_one_workflow(
    database: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(capsys, "ls", "-w", "naive", "--json", *database)
    assert code == 0, err
    assert [row["workflow"] for row in json.loads(out)] == ["naive"] * QUESTIONS


def test_rules_can_be_listed_by_the_name_of_their_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = call(capsys, "list", "rules", "--json")
    assert code == 0, err
    assert out == call(capsys, "list", "credit", "--json")[1]


def test_a_run_without_golds_is_credited_by_those_given(
    tmp_path: Path, runs: list[Run], capsys: pytest.CaptureFixture[str]
) -> None:
    """`budget explain` advised to, and the option was not there."""
    asked = next(run for run in runs if run.workflow == "naive")
    bare = asked.model_copy(update={"id": "e" * 32, "question": Question(text=asked.question.text)})
    db = tmp_path / "runs.db"
    with Store.open(db) as store:
        store.save(bare)
    command = ["credit", "--meter", "seper", "--rule", "trajectory", "--samples", "4"]
    [gold, *_] = asked.question.answers
    code, out, err = call(capsys, *command, "--gold", gold, "--json", "--db", str(db))
    assert code == 0, err
    found = json.loads(out)
    [total] = [row for row in found["credits"] if row["rule"] == "total"]
    assert total["value"] is not None
    assert found["appraisal"]["settings"]["gold"] == [gold]
    code, out, _ = call(capsys, "show", "--json", "--db", str(db))
    assert json.loads(out)["total"]["seper"]["delta"] == total["value"]
    code, out, _ = call(capsys, *command, "--json", "--db", str(db))
    [total] = [row for row in json.loads(out)["credits"] if row["rule"] == "total"]
    assert total["value"] is None


def test_golds_are_of_one_question(database: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "credit", "done", "--gold", "x", *database)
    assert (code, out) == (2, "")
    assert "--gold is the answer to one question: name one run" in err
