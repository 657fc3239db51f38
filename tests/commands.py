"""Commands, each in a process of its own that starts quickly: it is a fork of one that has loaded
the library. `python -m tests.commands HIDDEN...` is that process; nobody in it finds the libraries
HIDDEN. A line of its stdin is one command, a line of its stdout what became of it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
LOADED = (
    "alembic.command",
    "hopscope.api.creditings",
    "hopscope.api.session",
    "hopscope.cli.main",
    "hopscope.cli.options.spending",
    "hopscope.lab.evaluating",
    "hopscope.runtime.retrievers.bm25",
    "hopscope.store.store",
    "hopscope.tracing.meters.seper",
    "hopscope.tracing.statistics.averages",
)
"""What most commands need."""


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Hiding(PathFinder):
    """Finds what is installed, except for these libraries."""

    def __init__(self, hidden: Sequence[str]) -> None:
        self._hidden = frozenset(hidden)

    def find_spec(self, name: str, *where: Any) -> ModuleSpec | None:  # type: ignore[override]
        hidden = name.partition(".")[0] in self._hidden
        return None if hidden else PathFinder.find_spec(name, *where)


class Commands:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def __call__(self, *words: str, folder: Path, environment: Mapping[str, str]) -> Done:
        """Gives a command in a folder."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"words": words, "folder": str(folder), "environment": dict(environment)}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return Done(**json.loads(self._process.stdout.readline()))


@contextmanager
def started(
    *, hidden: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Iterator[Commands]:
    """
    Args:
        hidden: libraries that nobody finds.
        environment: of the process that loads the library.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "tests.commands", *hidden],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Commands(process)


def fork(words: Sequence[str], folder: str, environment: Mapping[str, str]) -> Done:
    """What became of a command."""
    with TemporaryFile() as out, TemporaryFile() as err:
        if child := os.fork():
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            for file in (out, err):
                file.seek(0)
            return Done(code, out.read().decode(), err.read().decode())
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        from hopscope.cli.main import main

        main(list(words))
        sys.exit(0)


def serve(hidden: Sequence[str]) -> None:
    sys.meta_path = [Hiding(hidden) if each is PathFinder else each for each in sys.meta_path]
    for name in LOADED:
        import_module(name)
    for line in sys.stdin:
        print(json.dumps(fork(**json.loads(line))._asdict()), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1:])
