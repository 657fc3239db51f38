"""`hopscope new`: what it writes works, passes its own test, and is in the form of this project."""

import subprocess
import sys
from pathlib import Path

import pytest

from hopscope.cli.main import main


def call(*arguments: str) -> int:
    try:
        main(list(arguments))
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_each_skeleton_passes_its_own_test_and_our_checks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in ("workflow", "meter", "policy"):
        assert call("new", kind, f"my_{kind}", "--out", str(tmp_path)) == 0
        assert f"test_my_{kind}.py" in capsys.readouterr().out
    written = sorted(path.name for path in tmp_path.iterdir())
    assert len(written) == 6
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:hopscope", "-c", "/dev/null"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
    root = Path(__file__).parents[4]
    for check in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *check, "--config", str(root / "pyproject.toml")]
        done = subprocess.run([*ruff, str(tmp_path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["My", "9lives", "a-b", "class", "../x", ""])
def test_a_name_that_is_no_module_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("new", "meter", name, "--out", str(tmp_path)) == 2
    assert "my_workflow" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_nothing_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_mine.py").write_text("kept")
    assert call("new", "policy", "mine", "--out", str(tmp_path)) == 2
    assert "exists" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["test_mine.py"]
