"""The scripts in examples/ run as they stand, and print what their readers are told."""

import json
import re
import runpy
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.project.test_docs_commands import unknown

EXAMPLES = Path(__file__).parents[2] / "examples"
PRINTED = {
    "ask": r"answer +Grand Rovmar.*All retrievals together: \+(0\.[5-9]|1\.0)",
    "own_retriever": r"Salwin Pictures\nstep 0: (0\.9|1\.0)",
    "own_graph": r"second_hop.*answer +→ Grand Rovmar.*2 retrievals",
    "budget": r"native: Grand Rovmar \(1\d\d\d tokens\).*fixed:2: Grand Rovmar \(\d\d\d tokens\)",
    "record_program": r"search 0: \+0\.00\nsearch 1: \+(0\.9|1\.0).*recorded:python",
    "record_agent": r"search - Elsa Wilby - no limit.*search - None - 1 of 1 retrievals are spent",
    "record_chain": r"passage \w+: \+(0\.9|1\.0)\d\npassage \w+: [+-]0\.0",
    "compare_workflows": r"closed_book +0 of 3.*naive .*ircot +3 of 3",
}


def test_the_workflow_for_github_actions_gives_commands_that_exist() -> None:
    """A misspelt option would fail everybody's pull requests."""
    loaded = yaml.safe_load((EXAMPLES / "gate.yml").read_text(encoding="utf-8"))
    assert set(loaded) == {"name", True, "permissions", "jobs"}  # YAML 1.1 reads `on` as true
    steps = loaded["jobs"]["gate"]["steps"]
    assert all(("uses" in step) != ("run" in step) for step in steps)
    commands = [step["run"].partition(" || ")[0] for step in steps if "run" in step]
    own = [command for command in commands if command.startswith("hopscope ")]
    assert [command.split()[1] for command in own] == ["eval", "gate"]
    assert {command: words for command in own if (words := unknown(command))} == {}


def test_every_example_is_run() -> None:
    elsewhere = {"record_llama_index"}  # tests/on_frameworks/test_recorded_programs.py
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PRINTED) | elsewhere


def test_the_notebook_prints_what_stands_in_it() -> None:
    """To .1, as readers on other processors may differ in the last digits."""
    notebook = json.loads((EXAMPLES / "first_run.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {"__name__": "__main__"}
    number = re.compile(r"[+-]?\d+\.\d")
    for cell in cells:
        code = "".join(cell["source"])
        with redirect_stdout(StringIO()) as printed:
            exec(compile(code, "first_run.ipynb", "exec"), names)
        told = "".join(line for output in cell["outputs"] for line in output["text"])
        assert number.sub("#", printed.getvalue()) == number.sub("#", told)
        found, expected = (map(float, number.findall(t)) for t in (printed.getvalue(), told))
        assert list(found) == pytest.approx(list(expected), abs=0.11)
    assert [cell["execution_count"] for cell in cells] == [1, 2, 3]
    assert sum(len(cell["source"]) for cell in cells) < 40


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_is_for(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOPSCOPE_DB", str(tmp_path / "runs.db"))
    monkeypatch.setenv("COLUMNS", "150")
    runpy.run_path(str(EXAMPLES / f"{name}.py"))
    printed = capsys.readouterr().out
    assert re.search(PRINTED[name], printed, re.DOTALL), printed
