"""`hopscope compare` on real runs of the embedded world, kept as an experiment in SQLite.

What the embedded reader answers is not known here: expectations are worked out from the runs.
"""

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from hopscope.lab import tables
from hopscope.runtime import components
from hopscope.runtime.texts.answers import exact_match
from hopscope.runtime.types import Run
from hopscope.store.store import Store
from tests.cli.experiment_example import QUESTIONS, WORKFLOWS, call, fill, make_runs


def compare(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The tables by name."""
    code, out, err = call(capsys, "compare", *arguments, "--json")
    assert code == 0, err
    return {table["name"]: table for table in json.loads(out)}


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return make_runs()


@pytest.fixture(scope="module")
def database(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    file = tmp_path_factory.mktemp("experiments") / "runs.db"
    fill(file, runs)
    return ["--db", str(file)]


def test_means_and_differences_are_those_of_the_runs(
    capsys: pytest.CaptureFixture[str], database: list[str], runs: list[Run]
) -> None:
    found = compare(capsys, "done", *database)
    assert list(found) == ["overview", "differences"]
    rows = {row["system"]: row for row in found["overview"]["rows"]}
    for workflow, row in rows.items():
        own = [one for one in runs if one.workflow == workflow]
        right = [exact_match(one.answer or "", one.question.answers) for one in own]
        assert row["exact_match"]["value"] == pytest.approx(sum(right) / QUESTIONS)
        assert (row["exact_match"]["measured"], row["exact_match"]["total"]) == (3, 3)
        tokens = sum(one.usage.tokens for one in own) / QUESTIONS
        assert row["tokens"]["value"] == pytest.approx(tokens)
        assert row["grogu"]["reason"] == "not appraised"
    # Positions 1, 3 and 5 are those of naive RAG: .125, .375 and .625.
    assert rows["naive"]["seper_delta"]["value"] == pytest.approx(0.375)
    assert rows["naive"]["seper"]["value"] == pytest.approx(0.625)
    [delta] = [row for row in found["differences"]["rows"] if row["measure"] == "ΔSePer"]
    assert (delta["system"], delta["versus"]) == WORKFLOWS
    assert delta["difference"]["value"] == pytest.approx(-0.375)
    # Differences of one sign: 2 of 8 ways to sign three questions are as far from 0.
    assert delta["p"] == delta["adjusted"] == pytest.approx(0.25, abs=0.04)


def test_every_table_is_made_and_printed(
    capsys: pytest.CaptureFixture[str], database: list[str], runs: list[Run]
) -> None:
    found = compare(capsys, "done", "-t", "all", "--reader", "tiny", *database)
    made = {name for name in components.names(tables) if any(n.startswith(name) for n in found)}
    assert made == set(components.names(tables))
    credit = found["credit_by_step"]["rows"]
    assert [(row["system"], row["retrieval"], row["runs"]) for row in credit] == [("naive", 1, 3)]
    assert credit[0]["trajectory"]["value"] == pytest.approx(0.375)
    errors = found["errors"]["rows"]
    whole = [row for row in errors if row["part"] == "whole run"]
    assert [row["system"] for row in whole] == list(WORKFLOWS)
    labelled = [row for row in found["correlations"]["rows"] if row["measure"].startswith("eRAG")]
    assert {row["system"] for row in labelled} == {"naive"}
    code, out, _ = call(capsys, "compare", "done", "-t", "all", *database)
    assert code == 0
    for title in ("Means over the measured values", "Credit per 1,000 tokens", "Flipped questions"):
        assert title in out
    assert "\x1b" not in out


def test_the_forms_that_papers_and_sheets_want(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    asked = ("compare", "done", "-t", "overview", "-m", "exact_match", *database)
    _, said, _ = call(capsys, *asked, "--csv")
    assert [row["system"] for row in csv.DictReader(StringIO(said))] == list(WORKFLOWS)
    _, said, _ = call(capsys, *asked, "--markdown")
    assert said.splitlines()[2].startswith("| system | questions | failed | EM | SePer |")
    _, said, _ = call(capsys, *asked, "--latex")
    assert r"closed\_book & 3 & 0 &" in said


def test_rows_by_hops(capsys: pytest.CaptureFixture[str], database: list[str]) -> None:
    found = compare(capsys, "done", "--by", "hops", "-t", "overview", *database)
    rows = found["overview"]["rows"]
    assert [(row["hops"], row["system"]) for row in rows] == [("2", w) for w in WORKFLOWS]


def test_what_is_not_done_is_told(capsys: pytest.CaptureFixture[str], database: list[str]) -> None:
    code, out, err = call(capsys, "compare", "done", "begun", *database)
    assert code == 0
    assert "done: naive" in out
    assert "begun: 6 of 6 are not done yet and left out" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "no experiment 'nothing'"),
        (["begun"], "nothing of begun is done yet"),
        (["done", "-t", "averages"], "no 'averages' among tables: choose from correlations"),
        (["done", "-m", "em"], "choose from bertscore, bleu"),
        (["done", "--csv", "--latex"], "--csv and --latex exclude each other"),
        (["done", "--resamples", "10"], "resamples"),
        (["done", "--prices", "/nowhere"], "prices /nowhere cannot be read"),
        ([], "EXP"),
    ],
)
def test_wrong_use_is_told_in_one_message(
    capsys: pytest.CaptureFixture[str], database: list[str], arguments: list[str], said: str
) -> None:
    code, out, err = call(capsys, "compare", *arguments, *database)
    assert (code, out) == (2, ""), err
    assert said in " ".join(err.split())
    assert "Traceback" not in err


def test_an_unknown_experiment_says_how_to_begin_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    Store.open(tmp_path / "new.db").close()
    code, _, err = call(capsys, "compare", "x", "--db", str(tmp_path / "new.db"))
    assert code == 2
    assert "begin one with `hopscope eval`" in err
