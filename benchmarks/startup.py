"""The time of a command from the start of its process to its end.

It makes a database of many runs: a hundred like those of benchmarks/store.py, and copies of the
rows that `ls` reads. Then it starts each command several times and takes the median, without the
first start, which brings files into memory.

    python benchmarks/startup.py [--runs 100000] [--repeats 10] [--db FILE] [--json]
"""

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Any

from hopscope.store.database import schema
from hopscope.store.store import Store
from store import STEPS, fill

WHOLE = 100
"""Complete runs, saved before the copies."""
COPIED = (schema.runs, schema.steps, schema.credits, schema.appraisals)


def make(file: Path, runs: int) -> None:
    """Fill a database with this many runs."""
    with Store.open(file) as store:
        fill(store, min(runs, WHOLE) * STEPS, random.Random(0))
    with closing(sqlite3.connect(file)) as connection, connection:
        for taken in range(WHOLE, runs, WHOLE):
            count = min(WHOLE, runs - taken)
            for table in COPIED:
                copy(
                    connection, table.name, [column.name for column in table.columns], taken, count
                )


def copy(
    connection: sqlite3.Connection, table: str, columns: list[str], taken: int, count: int
) -> None:
    """Add the rows of the first `count` runs again, as those of runs after the `taken`."""
    own = "number" if table == "runs" else "run"
    new = {own: f"{own} + {taken}", "id": f"printf('%032x', {taken} + number)"}
    names = ", ".join(f'"{name}"' for name in columns)
    values = ", ".join(new.get(name, f'"{name}"') for name in columns)
    connection.execute(
        f"INSERT INTO {table} ({names}) SELECT {values} FROM {table} WHERE {own} <= {count}"
    )


def waited(arguments: list[str]) -> tuple[float, float]:
    """Seconds of the clock and of the processor."""
    before, begun = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "hopscope.cli", *arguments]
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    seconds, after = time.perf_counter() - begun, getrusage(RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(file: Path, demo: Path, repeats: int) -> dict[str, Any]:
    """The time of each command."""
    with Store.open(file) as store:
        ids = store.ids()
    stored = ["--db", str(file)]
    commands = {
        "--help": ["--help"],
        "ls": ["ls", *stored],
        "ls --limit 200": ["ls", "--limit", "200", *stored],
        "show": ["show", *stored],
        "show RUN": ["show", ids[0], *stored],
        "demo": ["demo", "--db", str(demo)],
    }
    found: dict[str, Any] = {"runs": len(ids)}
    for name, arguments in commands.items():
        waited(arguments)
        times = [waited(arguments) for _ in range(repeats)]
        found[name] = {
            "seconds": round(median(clock for clock, _ in times), 2),
            "processor seconds": round(median(used for _, used in times), 2),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--db", type=Path, help="where to make and keep it; used if it is there")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = asked.db or Path(folder) / "runs.db"
        if not file.exists():
            make(file, max(1, asked.runs))
        found = measure(file, Path(folder) / "demo.db", max(1, asked.repeats))
    if asked.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{found.pop('runs')} runs, medians of {max(1, asked.repeats)}")
    for name, times in found.items():
        print(f"{name:16} {times['seconds']:6.2f} s, processor {times['processor seconds']:.2f} s")


if __name__ == "__main__":
    main()
