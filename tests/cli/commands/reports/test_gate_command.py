"""`hopscope gate`: its exit codes and files."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.experiment_example import call
from tests.lab.gate.gate_example import fill


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    file = tmp_path_factory.mktemp("gate") / "runs.db"
    fill(file, "first", [True] * 20)
    fill(file, "broken", [False] * 10 + [True] * 10)
    return ["--db", str(file)]


def test_a_fall_exits_with_1_and_writes_its_reports(
    capsys: pytest.CaptureFixture[str], database: list[str], tmp_path: Path
) -> None:
    base, xml, text = (tmp_path / name for name in ("base.json", "gate.xml", "gate.md"))
    code, out, err = call(capsys, "gate", "first", "--write", str(base), *database)
    assert (code, err) == (0, "")
    assert out.startswith(f"{base}  20 questions, naive: answered, exact_match")
    files = ["--junit", str(xml), "--markdown", str(text)]
    asked = ["--metric", "f1", "--drop", ".1", "--metric", "exact_match", "--drop", ".6"]
    for _ in range(2):  # reports are replaced
        code, out, err = call(
            capsys, "gate", "broken", "--baseline", str(base), *asked, *files, *database
        )
        assert code == 1
    assert "Gate failed: broken against first" in out
    assert "naive: f1 fell by more than 0.1: 1.000 → 0.500 over 20 questions" in err
    assert "exact_match" not in err
    [suite] = ElementTree.parse(xml).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert text.read_text().startswith("**Gate failed: broken against first**\n")
    code, out, _ = call(
        capsys, "gate", "broken", "--baseline", str(base), *asked, *database, "--json"
    )
    found = json.loads(out)
    assert (code, found["passed"]) == (1, False)
    assert [row["drop"]["allowed"] for row in found["rows"]] == [0.1, 0.6]


def test_no_fall_exits_with_0(capsys: pytest.CaptureFixture[str], database: list[str]) -> None:
    code, out, err = call(capsys, "gate", "first", "--baseline", "first", *database)
    assert (code, err) == (0, "")
    assert "Gate passed" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give --baseline EXP to compare, or --write FILE"),
        (["--baseline", "first", "--write", "x.json"], "give --baseline EXP to compare, or"),
        (["--baseline", "nothing"], "no baseline 'nothing'"),
        (
            ["--baseline", "first", "-m", "f1", "--drop", ".1", "--drop", ".2"],
            "--drop is given 2 times for 1 --metric",
        ),
        (["--baseline", "first", "-m", "f1", "-m", "f1"], "--metric is given twice"),
        (["--baseline", "first", "--drop", "-1"], "--drop"),
        (["--baseline", "first", "--junit", "/nowhere/x.xml"], "/nowhere/x.xml cannot be written"),
    ],
)
def test_wrong_use_exits_with_2(
    capsys: pytest.CaptureFixture[str], database: list[str], arguments: list[str], said: str
) -> None:
    code, _, err = call(capsys, "gate", "broken", *arguments, *database)
    assert code == 2
    assert said in " ".join(err.split())
    assert "Traceback" not in err
