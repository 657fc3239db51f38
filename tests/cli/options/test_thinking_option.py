"""`--thinking`, and what is said of readers that think."""

import json
from pathlib import Path

import pytest

from hopscope.api import parts
from hopscope.cli.main import main
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Run
from hopscope.store.store import Store
from tests import models


def test_it_becomes_an_option_of_the_reader() -> None:
    assert parts.thoughtful("hf:FOLDER", "on") == "hf:FOLDER,thinking=on"
    assert parts.thoughtful("hf:FOLDER,dtype=float32", "512") == (
        "hf:FOLDER,dtype=float32,thinking=512"
    )
    assert parts.thoughtful("hf:FOLDER,thinking=off", "on") == "hf:FOLDER,thinking=off"
    assert parts.thoughtful("hf:FOLDER", None) == "hf:FOLDER"
    assert parts.thoughtful("tiny", "off") == parts.thoughtful("tiny", "auto") == "tiny"
    with pytest.raises(UsageError, match="tiny does not think"):
        parts.thoughtful("tiny", "on")
    for bad in ("0", "-3", "yes", "1e3", "²"):
        with pytest.raises(UsageError, match="on, off, auto, or a number of tokens"):
            parts.thoughtful("hf:FOLDER", bad)


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """stdout and stderr of a command that goes well."""
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    assert ended.value.code in (0, None)
    found = capsys.readouterr()
    return found.out, found.err


def test_a_run_keeps_thoughts_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = models.tiny_thinker(tmp_path / "model", "r1", max_position_embeddings=4096)
    command = ["run", "Who directed Alba?", "-w", "naive", "-k", "1", "--samples", "2", "--json"]
    command += ["--gold", "Bruno", "--reader", f"hf:{folder}", "--db", str(tmp_path / "runs.db")]
    out, err = call(capsys, *command, "--thinking", "5")
    assert "thinks before each answer" in err
    assert "for up to 5 tokens" in err
    assert "1 of 1 thoughts were closed by force" in " ".join(err.split())
    run = stored(out, tmp_path)
    [thought] = [g.thought for e in run.steps[1].exchanges for g in e.generations]
    assert thought is not None
    assert thought.end == "forced"
    assert json.loads(out)["steps"][1]["usage"]["thinking_tokens"] == thought.tokens > 5
    assert run.usage.thinking_tokens == thought.tokens
    assert run.reader.endswith(":thinking=5")
    monkeypatch.setenv("HOPSCOPE_THINKING", "off")
    out, err = call(capsys, *command)
    assert "an empty thought is put before each answer" in " ".join(err.split())
    [reply] = [g for e in stored(out, tmp_path).steps[1].exchanges for g in e.generations]
    assert reply.thought is None


def test_an_experiment_counts_the_thoughts_closed_by_force_as_a_run_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`eval` said nothing of them."""
    folder = models.tiny_thinker(tmp_path / "model", "r1", max_position_embeddings=4096)
    command = ["eval", "hopland:dev", "-w", "naive:k=1", "--limit", "2", "--meter", "none"]
    command += ["--reader", f"hf:{folder}", "--db", str(tmp_path / "runs.db"), "--thinking", "5"]
    for _ in range(2):  # the second time there is nothing left to do
        _, err = call(capsys, *command)
        assert "2 of 2 thoughts were closed by force" in " ".join(err.split())


def stored(out: str, folder: Path) -> Run:
    with Store.open(folder / "runs.db") as store:
        return store.load(json.loads(out)["id"])
