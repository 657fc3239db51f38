"""Terminals that carry few characters."""

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from hopscope.api.views import encoding
from tests.cli.views.screens_example import NAME, fill


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("encoding") / "runs.db"
    fill(file)
    return file


def printed(name: str, *arguments: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "hopscope.cli", *arguments],
        capture_output=True,
        check=False,
        env=os.environ | {"PYTHONIOENCODING": name, "COLUMNS": "80"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["ascii", "cp1252", "latin-1"])
def test_a_run_is_shown_in_the_characters_that_there_are(name: str, db: Path) -> None:
    """Arrows and bars ended `show` in a UnicodeEncodeError."""
    shown = printed(name, "show", "--db", str(db)).decode(name)
    assert "dSePer +0.50" in shown
    assert "Shapley +0.50 ####" in shown
    assert ("Ada Olberg" if name == "ascii" else "Ada Ølberg") in shown


def test_json_is_whole_on_any_terminal(db: Path) -> None:
    rows = json.loads(printed("ascii", "ls", "--json", "--db", str(db)))
    assert rows[0]["answer"] == "Ada Ølberg"
    assert json.loads(printed("ascii", "compare", NAME, "--json", "--db", str(db)))


def test_what_stands_in_is_as_wide() -> None:
    assert all(len(plain) == 1 and plain.isascii() for plain in encoding.SIMILAR)
    text = "Δ→█é日\u0301ж"
    assert text.encode("ascii", errors=_registered()) == b"d>#e???"
    assert unicodedata.east_asian_width("日") == "W"


def _registered() -> str:
    encoding.prepare()
    return encoding.PLAIN
