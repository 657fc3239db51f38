"""What a person waits for without a model: these commands load no library that they do not need."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hopscope.runtime.types import Question, Run
from hopscope.store.store import Store

HEAVY = (
    "torch",
    "transformers",
    "numpy",
    "scipy",
    "langgraph",
    "alembic",
    "httpx",
    "sqlalchemy.dialects.postgresql",
)
CODE = """
import sys
from hopscope.cli.main import main
try:
    main(sys.argv[2:])
finally:
    print(*[name for name in sys.argv[1].split() if name in sys.modules], file=sys.stderr)
"""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("startup") / "runs.db"
    with Store.open(path) as store:
        now = datetime(2026, 11, 21, tzinfo=UTC)
        run = Run(id="r1", question=Question(text="Who?"), workflow="w", started=now, seconds=0.1)
        store.save(run)
    return path


@pytest.mark.parametrize(
    "command", ["--help", "--version", "ls", "show", "show --json", "db check"]
)
def test_a_quick_command_loads_nothing_heavy(db: Path, command: str) -> None:
    where = [] if command.startswith("--") else ["--db", str(db)]
    done = subprocess.run(
        [sys.executable, "-c", CODE, " ".join(HEAVY), *command.split(), *where],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "\n")
    assert done.stdout
