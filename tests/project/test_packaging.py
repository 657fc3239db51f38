"""What is built installs, and what is installed runs, weights, corpus and migrations included."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from the sdist."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    names = source / "names"
    names.write_bytes(tracked)
    tree = source / "tree"
    tree.mkdir()
    archive = subprocess.run(
        ["tar", "--create", "--null", "--files-from", str(names), "--ignore-failed-read"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    subprocess.run(["tar", "--extract"], cwd=tree, input=archive, check=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(tree)]
    subprocess.run(command, check=True, capture_output=True)
    return out


def test_an_installed_package_answers(built: Path, tmp_path: Path) -> None:
    """The environment holds nothing of this checkout; only the dependencies are borrowed. The wheel
    was built from the sdist."""
    [distribution] = built.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=False)
    own = sysconfig.get_path("purelib", vars={"base": str(tmp_path / "env")})
    pip = [sys.executable, "-m", "pip", "--python", str(tmp_path / "env" / "bin" / "python")]
    install = ["install", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    Path(own, "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run([*pip, *install, str(distribution)], check=True, capture_output=True)
    environment = {
        **os.environ,
        "HOPSCOPE_DB": str(tmp_path / "runs.db"),
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": "",
    }
    hopscope = str(tmp_path / "env" / "bin" / "hopscope")
    done = subprocess.run(
        [hopscope, "demo", "--samples", "2"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Shapley" in done.stdout
    where = subprocess.run(
        [
            str(tmp_path / "env" / "bin" / "python"),
            "-c",
            "import hopscope; print(hopscope.__file__)",
        ],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(tmp_path) in where.stdout
