"""The tables of real answers, on a few made-up ones in the form of the research data."""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
GIVEN = {
    # by question: what each route answered; the gold is the colour
    "red": ("red", "red", "red"),
    "blue": ("green", "blue", "it is blue"),
    "black": ("white", "white", "black"),
    "grey": ("white", "white", "pink"),
    "yes": ("no", "yes", "yes"),
}
SETS = {"hotpotqa": "hotpotqa_train500.jsonl", "2wikimultihopqa": "2wiki_train500.jsonl"}


def answered(name: str, gold: str) -> dict[str, Any]:
    told = dict(zip(("none", "one", "ircot"), GIVEN[gold], strict=True))
    right = {route: float(gold in answer) for route, answer in told.items()}
    return {
        "dataset": name,
        "id": f"{name}-{gold}",
        "question": f"What colour has thing {gold}?",
        "answers": [gold],
        "predictions": told,
        "accurate": right,
    }


def with_passages(name: str, gold: str) -> dict[str, Any]:
    own = [
        {"title": f"Thing {gold}", "text": f"Its colour is {gold}.", "is_supporting": True},
        {"title": f"Place {gold}", "text": "Nothing is told.", "is_supporting": False},
    ]
    return {**answered(name, gold), "passages": own}


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the files, and scripts that find what they share."""
    for folder in (FOLDER, FOLDER / "experiments"):
        monkeypatch.syspath_prepend(folder)
    write(
        tmp_path / "llama8b_routes_dev.jsonl",
        [answered(name, gold) for name in SETS for gold in GIVEN],
    )
    for name, file in SETS.items():
        write(tmp_path / file, [with_passages(name, gold) for gold in GIVEN])
    monkeypatch.setattr(sys, "argv", ["script", "--data", str(tmp_path)])
    yield tmp_path
    for module in ("research_data", "llama_answers", "real_answers", "real_rankings"):
        sys.modules.pop(module, None)


def rows(out: str, first: str, second: str = "") -> list[list[str]]:
    """The cells of the rows that begin so."""
    found = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines()]
    return [row for row in found if row[:1] == [first] and (not second or row[1] == second)]


@pytest.mark.usefixtures("data")
def test_the_tables_of_answers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = import_module("real_answers")
    monkeypatch.setattr(script, "EVALUATIONS", 40)
    script.main()
    out = capsys.readouterr().out
    accuracy, *_ = rows(out, "hotpotqa", "ircot")
    assert [cell.split()[0] for cell in accuracy[2:4]] == ["0.600", "0.800"]
    assert "agrees with the verdict of the file on 30 of 30 answers" in out
    bounds = {row[1]: row[2:5] for row in rows(out, "hotpotqa") if row[1] in "123"}
    assert bounds == {
        "1": ["3", "0.200", "0.800"],
        "2": ["3", "0.600", "0.800"],
        "3": ["1", "0.800", "0.800"],
    }
    [votes] = rows(out, "hotpotqa, best: ircot")
    # Two routes agree on blue and on yes; on black the two that are wrong do.
    assert [cell.split()[0] for cell in votes[1:4]] == ["0.800", "0.600", "0.600"]


@pytest.mark.usefixtures("data")
def test_the_tables_of_rankings(capsys: pytest.CaptureFixture[str]) -> None:
    import_module("real_rankings").main()
    out = capsys.readouterr().out
    [errors] = rows(out, "2wikimultihopqa", "ircot")
    # Of four questions no passage holds "it is blue", which is right, and "pink", which is not.
    assert [cell.split()[0] for cell in errors[2:6]] == ["0.250", "0.000", "0.000", "0.500"]
    assert "4 questions of hotpotqa and 4 questions of 2wikimultihopqa" in out
    assert len(rows(out, "hotpotqa", "gold")) == 5


def test_a_missing_file_is_named(data: Path) -> None:
    (data / "llama8b_routes_dev.jsonl").unlink()
    with pytest.raises(SystemExit, match=r"llama8b_routes_dev\.jsonl not in"):
        import_module("real_answers").main()
