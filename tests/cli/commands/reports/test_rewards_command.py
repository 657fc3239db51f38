"""`hopscope rewards` writes what is stored, and measures only if a reader is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.experiment_example import call, fill, make_runs


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rewards") / "runs.db"
    fill(path, make_runs())
    return path


@pytest.fixture(autouse=True)
def database(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPSCOPE_DB", str(file))


def read(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("hopscope.api.parts.reader", fail)
    monkeypatch.setattr("hopscope.runtime.readers.tiny.build", fail)


def test_an_experiment_that_was_credited_needs_no_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    no_model(monkeypatch)
    out = tmp_path / "rewards.jsonl"
    code, printed, err = call(capsys, "rewards", "done", "--format", "trl", "--out", str(out))
    assert (code, printed) == (0, ""), err
    lines = read(out.read_text())
    assert [line["turn_rewards"] for line in lines] == [[], [0.125], [], [0.375], [], [0.625]]
    assert [line["reward"] for line in lines] == [0.0, 0.125, 0.0, 0.375, 0.0, 0.625]
    assert "3 turns of 6 runs" in err
    code, _, err = call(capsys, "rewards", "done", "--out", str(out))
    assert code == 2
    assert "--overwrite" in err
    code, printed, err = call(capsys, "rewards", "done", "--format", "prime-rl")
    assert code == 0
    assert read(printed)[1]["info"] == {"turn_rewards": [0.25, 0.375]}


def test_what_is_not_stored_is_measured_by_the_reader_that_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What it measures is stored, so that the next time needs no model."""
    asked = ("rewards", "done", "--rule", "shapley", "--format", "verl")
    code, printed, err = call(capsys, *asked)
    # The runs without a search need no share.
    assert code == 1, err
    assert [line["reward_score"] for line in read(printed)] == [0.0, None] * 3
    assert "3 runs are not measured; give --reader to measure them" in err
    assert "3 runs lack a reward: no credit by seper and shapley is stored" in err
    code, printed, err = call(capsys, *asked, "--reader", "tiny", "--samples", "2")
    assert code == 0, err
    first = read(printed)
    for line in first:
        rewards = line["extra_fields"]["tool_rewards"]
        assert sum(rewards) == pytest.approx(line["reward_score"], abs=1e-9)
    assert any(line["reward_score"] > 0.5 for line in first)
    code, printed, err = call(capsys, *asked)
    assert code == 0, err
    assert read(printed) == first


def test_without_any_credit_nothing_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "rewards.jsonl"
    code, printed, err = call(
        capsys, "rewards", "done", "--meter", "semantic-entropy", "--out", str(out)
    )
    assert (code, printed, out.exists()) == (2, "", False)
    assert "no credit by semantic_entropy and trajectory is stored; give --reader" in err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("--format", "prime-rl", "--rule", "leave-one-out"),
            "choose --rule trajectory or shapley",
        ),
        (("--format", "nemo"), "choose from areal, jsonl, prime-rl, trl, verl"),
        (("--rule", "solo"), "choose from trajectory, shapley, leave-one-out"),
        (("--meter", "sepper", "--reader", "tiny"), "no 'sepper' among meters"),
    ],
)
def test_wrong_use_is_told(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    code, printed, err = call(capsys, "rewards", "done", *arguments)
    assert (code, printed) == (2, "")
    assert told in err


def test_unknown_runs_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "rewards", "nobody")
    assert code == 2
    assert "no run or experiment 'nobody'" in err


def test_a_missing_file_is_told_as_such(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where there is no database yet."""
    for name, told in (
        ("missing.jsonl", "missing.jsonl: there is no such file"),
        (f"{tmp_path}/missing", "missing: there is no such file"),
        (str(tmp_path), "is a folder: name one file of rollouts"),
    ):
        code, _, err = call(capsys, "rewards", name, "--reader", "tiny")
        assert (code, told in err) == (2, True), err
    monkeypatch.setenv("HOPSCOPE_DB", str(tmp_path / "none.db"))
    code, _, err = call(capsys, "rewards", "missing.jsonl", "--reader", "tiny")
    assert (code, "there is no such file" in err) == (2, True), err


def test_a_file_of_rollouts_is_scored_without_being_stored(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPSCOPE_DB", str(tmp_path / "none.db"))
    file = tmp_path / "agent.jsonl"
    text = (
        "<search>Elsa Wilby</search><information>Doc 1(Title: Elsa Wilby) Elsa Wilby is employed "
        "by Salwin Pictures.</information><answer>Salwin Pictures</answer>"
    )
    record = {"question": "What company employs Elsa Wilby?", "output": text}
    file.write_text(json.dumps({**record, "answers": ["Salwin Pictures"]}) + "\n")
    asked = ("rewards", str(file), "--meter", "gold-probability", "--format", "prime-rl")
    code, _, err = call(capsys, *asked)
    assert code == 2
    assert "name it alone, and give --reader" in err
    code, printed, err = call(capsys, *asked, "--reader", "tiny")
    assert code == 0, err
    [line] = read(printed)
    before, after = line["info"]["turn_rewards"]
    assert after - before == pytest.approx(line["reward"], abs=1e-9)
    assert line["reward"] > 0.5
    assert line["id"] == "agent.jsonl, line 1"
    assert not (tmp_path / "none.db").exists()
