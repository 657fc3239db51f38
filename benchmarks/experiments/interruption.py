"""Is anything lost or doubled when an experiment is killed repeatedly?

It runs `hopscope eval` once without interruption, and once with SIGKILL at random moments, half of
them with all workers and half without, each time resumed by the same command. Then it compares both
results of every question, except times, and looks for lost or doubled rows and for "database is
locked".

    python benchmarks/experiments/interruption.py [--questions 300] [--kills 25] [--workers 4]
                                                  [--seed 0]
"""

import argparse
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from hopscope.store.store import Store

NAME = "interruption"
PAUSE_SECONDS = 1.0
"""The longest delay of a kill after its random number of done questions, in seconds."""


def command(database: Path, questions: int, workers: int) -> list[str]:
    return [
        sys.executable, "-m", "hopscope.cli", "eval", "hopland:test", "-w", "naive",
        "--meter", "seper", "--rule", "trajectory", "--samples", "3", "--limit", str(questions),
        "--workers", str(workers), "--db", str(database), "--name", NAME, "--json",
        "--deterministic",
    ]  # fmt: skip


def done(database: Path) -> int:
    if not database.exists():
        return 0
    with closing(sqlite3.connect(database, timeout=60)) as connection:
        try:
            [(count,)] = connection.execute("SELECT count(*) FROM items WHERE status = 'ok'")
        except sqlite3.OperationalError:  # the tables are not there yet
            return 0
    return int(count)


def killed(run: list[str], database: Path, at: int, rng: random.Random, log: Path) -> bool:
    """Start the command and kill it. True if it was still at work."""
    with log.open("a") as errors:
        running = subprocess.Popen(
            run, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
        )
        while done(database) < at and running.poll() is None:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, PAUSE_SECONDS))
        if running.poll() is not None:
            return False
        if rng.random() < 0.5:
            os.killpg(running.pid, signal.SIGKILL)
        else:
            running.kill()
        running.wait()
    return True


def whole(run: list[str], log: Path) -> dict[str, Any]:
    """Run the command to its end. Returns its output without times."""
    with log.open("a") as errors:
        ended = subprocess.run(run, stdout=subprocess.PIPE, stderr=errors, text=True)
    if ended.returncode:
        sys.exit(f"the run failed:\n{log.read_text()[-2000:]}")
    told: dict[str, Any] = json.loads(
        re.sub(r'"(created|seconds)": [^,\n]+', r'"\1": 0', ended.stdout)
    )
    return told


def measure(questions: int, kills: int, workers: int, seed: int, folder: Path) -> dict[str, Any]:
    rng = random.Random(seed)
    log, database = folder / "log", folder / "killed.db"
    began = time.monotonic()
    expected = whole(command(folder / "whole.db", questions, workers), log)
    unbroken = time.monotonic() - began

    run = command(database, questions, workers)
    moments = sorted(rng.choices(range(questions), k=kills))
    struck, at = 0, []
    for moment in moments:
        struck += killed(run, database, moment, rng, log)
        at.append(done(database))
        print(f"killed {struck} times, {at[-1]} of {questions} done", file=sys.stderr, flush=True)
    found = whole(run, log)
    with Store.open(database) as store:
        items, runs = store.experiments.items(NAME), store.runs(None)
        faults = store.verify()
    rows = {(row["id"], row["workflow"]): row for row in expected["items"]}
    same = sum(rows.get((row["id"], row["workflow"])) == row for row in found["items"])
    return {
        "questions": questions,
        "workers": workers,
        "kills": struck,
        "done_at_kill": at,
        "rows": len(items),
        "rows_lost": questions - len(items),
        "runs_doubled": len(runs) - len({item.entry.hash for item in items}),
        "attempts": sum(item.attempts for item in items),
        "rows_equal": same,
        "all_equal": found == expected,
        "faults": len(faults),
        "locked": log.read_text().count("database is locked"),
        "seconds_unbroken": round(unbroken, 1),
        "seconds_killed": round(time.monotonic() - began - unbroken, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hopscope-") as folder:
        found = measure(given.questions, given.kills, given.workers, given.seed, Path(folder))
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        for key, value in found.items():
            print(f"{key:18} {value}")
    good = found["all_equal"] and not (
        found["rows_lost"] or found["runs_doubled"] or found["faults"] or found["locked"]
    )
    sys.exit(0 if good and found["kills"] else 1)


if __name__ == "__main__":
    main()
