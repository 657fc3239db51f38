"""The largest memory of `hopscope eval`, by the number of questions.

Each row is a process of its own with the embedded reader and a fresh database; memory is the
largest resident size that the system saw (`ru_maxrss`), seconds are processor time, and `auto` is
the default of `--threads`. Memory is bounded if the largest of a column hardly exceeds the
smallest.

    OMP_NUM_THREADS=1 python benchmarks/experiments/eval_memory.py [--questions 25 100 400]
        [--workflow naive]... [--meter none]... [--threads auto 1] [--reader tiny] [--json]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

COMMAND = "from hopscope.cli.main import main; main()"


class Cost(NamedTuple):
    """The cost of a process."""

    megabytes: float
    """The largest memory, in units of 1,000,000 bytes."""
    seconds: float
    """Of the processor."""


def spent(command: Sequence[str]) -> Cost:
    """The cost of a command. Raises SystemExit if it fails."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {said.strip()[-500:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(usage.ru_maxrss * unit / 1e6, usage.ru_utime + usage.ru_stime)


def measured(
    questions: int, *, workflow: str, meter: str, threads: str, reader: str, folder: Path
) -> Cost:
    options = ["-w", workflow, "--meter", meter, "--limit", str(questions), "--threads", threads]
    database = folder / f"{workflow}-{meter}-{threads}-{questions}.db"
    return spent(
        [
            *(sys.executable, "-c", COMMAND, "eval", "hopland:dev", *options),
            *("--reader", reader, "--db", str(database)),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=int, nargs="+", default=[25, 100, 400])
    parser.add_argument("--workflow", nargs="+", default=["naive"])
    parser.add_argument("--meter", nargs="+", default=["none"])
    parser.add_argument("--threads", nargs="+", default=["auto", "1"])
    parser.add_argument("--reader", default="tiny")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if min(given.questions) < 1:
        parser.error("--questions of 1 or more are needed")
    rows = []
    if not given.json:
        print("| workflow | meter | threads | questions | largest memory, MB | seconds |")
        print("|---|---|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for workflow in given.workflow:
            for meter in given.meter:
                for threads in given.threads:
                    for questions in given.questions:
                        cost = measured(
                            questions,
                            workflow=workflow,
                            meter=meter,
                            threads=threads,
                            reader=given.reader,
                            folder=Path(folder),
                        )
                        rows.append([workflow, meter, threads, questions, *cost])
                        if not given.json:
                            cells = [workflow, meter, threads, f"{questions:,}"]
                            cells += [f"{cost.megabytes:.0f}", f"{cost.seconds:.1f}"]
                            print(f"| {' | '.join(cells)} |", flush=True)
    if given.json:
        names = ("workflow", "meter", "threads", "questions", *Cost._fields)
        json.dump([dict(zip(names, row, strict=True)) for row in rows], sys.stdout, indent=2)


if __name__ == "__main__":
    main()
