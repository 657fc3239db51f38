"""What a person waits for without a model: these commands load no library that they do not need."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hopscope.cli.commands import COMMANDS
from hopscope.cli.main import main
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


def started(*command: str, looking_for: tuple[str, ...]) -> tuple[str, list[str]]:
    """What a command prints, and which of these modules it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, " ".join(looking_for), *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.splitlines()[-1].split()


@pytest.mark.parametrize(
    "command", ["--help", "--version", "ls", "ls --limit 3", "show", "show r1 --json", "db check"]
)
def test_a_quick_command_loads_nothing_heavy(db: Path, command: str) -> None:
    where = [] if command.startswith("--") else ["--db", str(db)]
    printed, loaded = started(*command.split(), *where, looking_for=HEAVY)
    assert printed
    assert loaded == []


def test_a_command_loads_no_other_command_and_no_part_of_the_store_that_it_leaves_alone(
    db: Path,
) -> None:
    modules = ("show", "eval", "budget", "compare")
    looking_for = (
        *(f"hopscope.cli.commands.{name}" for name in modules),
        "hopscope.store.experiments.experiments",
        "hopscope.store.runs.writing",
    )
    _, loaded = started("ls", "--db", str(db), looking_for=looking_for)
    assert loaded == ["hopscope.cli.commands.show"]


def test_a_variable_for_the_database_loads_no_other_command(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All were loaded to tell whether HOPSCOPE_DB is a name that one of them reads."""
    monkeypatch.setenv("HOPSCOPE_DB", str(db))
    modules = ("hopscope.cli.commands.eval", "hopscope.cli.commands.budget.group")
    _, loaded = started("ls", looking_for=modules)
    assert loaded == []


def test_the_demo_loads_neither_training_nor_statistics_nor_migrations(db: Path) -> None:
    looking_for = ("torch", "scipy.stats", "sklearn", "pandas", "alembic", "hopscope.lab.export")
    looking_for += ("hopscope.lab.hopland.contexts",)
    printed, loaded = started("demo", "--json", "--db", str(db), looking_for=looking_for)
    assert printed
    assert loaded == ["torch"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_asked_for_is_mounted_alone(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f" {name} [OPTIONS]" in capsys.readouterr().out


def test_without_a_command_first_all_are_mounted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help", "ls"])
    listed = capsys.readouterr().out
    assert [name for name in COMMANDS if f" {name} " not in listed] == []


@pytest.mark.parametrize(
    ("asked", "closed", "code"),
    [("ls", ">&-", 0), ("ls", "<&- >&- 2>&-", 0), ("show nothere", "2>&-", 2)],
)
def test_closed_standard_streams_lead_nowhere(asked: str, closed: str, code: int, db: Path) -> None:
    """`ls >&-` ended in a traceback, `show nothere 2>&-` in exit code 1."""
    command = f'"{sys.executable}" -m hopscope.cli {asked} --db "{db}" {closed}'
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_a_stopped_command_says_so(
    db: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`index build` and `ls` ended with 130 and without a word."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "__init__", interrupted)
    with pytest.raises(SystemExit) as stop:
        main(["ls", "--db", str(db)])
    assert stop.value.code == 130
    assert capsys.readouterr().err == "hopscope: stopped\n"
