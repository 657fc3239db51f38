"""Exports for FlashRAG, ragas and inspect_ai; `tests/on_inspect` has the real packages."""

import json
import sys
from pathlib import Path

import pytest

from hopscope.lab.export import ragas
from hopscope.runtime.types import Question, Run
from hopscope.store.formats import flashrag
from hopscope.store.trajectories.sources import Source
from tests.cli.experiment_example import call
from tests.cli.views.screens_example import ARMS, NAME, fill, run_of
from tests.lab.gate import gate_example

DOCUMENTED = {"user_input": str, "retrieved_contexts": list, "response": str, "reference": str}
"""Of ragas' single-turn samples."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    file = tmp_path_factory.mktemp("sets") / "runs.db"
    fill(file)
    gate_example.fill(file, "failing", [True, None])
    return ["--db", str(file)]


def test_flashrags_data_come_back(
    capsys: pytest.CaptureFixture[str], database: list[str], tmp_path: Path
) -> None:
    code, out, _ = call(capsys, "export", "flashrag", NAME, "--out", str(tmp_path), *database)
    assert code == 0
    files = [Path(line.partition("  ")[0]) for line in out.splitlines()]
    assert [file.name for file in files] == ["intermediate_data.json"] * len(ARMS)
    for arm, file in enumerate(files):
        format, source = flashrag.build(), Source(file)
        assert format.fits(source)
        for place, found in enumerate(format.runs([source])):
            assert isinstance(found, Run)
            run = run_of(2 * place + arm)
            assert found.question == run.question
            assert found.answer == run.answer
            assert [step.query for step in found.retrievals] == [run.steps[0].query]
            told = [
                (hit.passage.id, hit.passage.title, hit.passage.text, hit.score)
                for hit in found.retrievals[0].ranked
            ]
            assert told == [
                (hit.passage.id, hit.passage.title, hit.passage.text, hit.score)
                for hit in run.steps[0].ranked
            ]


def test_ragas_samples_have_the_documented_fields(
    capsys: pytest.CaptureFixture[str], database: list[str], tmp_path: Path
) -> None:
    code, _, _ = call(capsys, "export", "ragas", NAME, "--out", str(tmp_path), *database)
    assert code == 0
    rows = [json.loads(line) for line in (tmp_path / "naive.jsonl").read_text().splitlines()]
    assert [{key: type(value) for key, value in row.items()} for row in rows] == [DOCUMENTED] * 2
    assert rows[0]["retrieved_contexts"][1] == "Salwin Pictures\nSalwin Pictures is a name."
    run = run_of(0).model_copy(update={"question": Question(text="Who?")})
    assert "reference" not in ragas.sample(run)


def test_questions_without_an_answer_are_left_out_and_counted(
    capsys: pytest.CaptureFixture[str], database: list[str], tmp_path: Path
) -> None:
    asked = ("export", "ragas", "failing", "--out", str(tmp_path), *database)
    code, out, err = call(capsys, *asked)
    assert (code, out) == (0, f"{tmp_path / 'naive.jsonl'}  1 question\n")
    assert "naive.jsonl: left out: 1 question without an answer" in err
    code, _, err = call(capsys, *asked)
    assert code == 2
    assert "is there already: give --overwrite" in err


def test_inspect_logs_name_the_extra_that_they_need(
    capsys: pytest.CaptureFixture[str],
    database: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    code, _, err = call(capsys, "export", "inspect", NAME, "--out", str(tmp_path), *database)
    assert code == 2
    assert "pip install 'hopscope[inspect]'" in err
    assert list(tmp_path.iterdir()) == []
