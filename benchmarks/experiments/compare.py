"""The time of `hopscope compare` over 10,000 questions, from a cold start.

It fills a database with an experiment of synthetic runs, written as rows: each question by each of
two arms, five steps per run, appraised by two meters and three rules. Then it times the command in
a process of its own.

    python benchmarks/experiments/compare.py [--questions 10000] [--arms 2] [--repeats 5] [--json]
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Any

from sqlalchemy import Connection, Table, insert

from hopscope.runtime.types import Provenance, Question
from hopscope.store.database import schema
from hopscope.store.database.schema import WHOLE_RUN, WHOLE_STEP
from hopscope.store.experiments.records import Arm, DatasetEntry, Experiment
from hopscope.store.store import Store

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "synthetic"
KINDS = ("retrieve", "generate", "retrieve", "generate", "generate")
RULES = ("trajectory", "shapley", "leave_one_out")
BATCH = 1000
FAILING = 100
"""One item in this many failed."""


def fill(file: Path, questions: int, arms: int, seed: int = 0) -> None:
    """A store with the experiment."""
    labels = [f"arm{i}" for i in range(arms)]
    experiment = Experiment(
        name=NAME,
        settings={"data": NAME},
        reader="hopland@synthetic",
        retriever="bm25@synthetic",
        entailment="lexical",
        seed=seed,
        fingerprint=NAME,
        created=NOW,
        arms=tuple(
            Arm(label=label, workflow="ircot", settings={"options": {"k": k}})
            for k, label in enumerate(labels, start=1)
        ),
    )
    entries = [
        DatasetEntry(
            question=Question(text=f"Who founded town {i}?", answers=(f"person {i}",), id=f"q{i}"),
            hops=1 + i % 4,
        )
        for i in range(questions)
    ]
    rng = random.Random(seed)
    with Store.open(file) as store:
        store.experiments.add(experiment, entries)
        with store._database.writing() as connection:
            provenance = Provenance(reader=experiment.reader, settings={"samples": 10})
            row = {"number": 1, "settings_hash": provenance.settings_hash, **dict(provenance)}
            connection.execute(insert(schema.provenances), [row])
            for first in range(0, questions * arms, BATCH):
                _write(connection, range(first, min(first + BATCH, questions * arms)), arms, rng)


def _write(connection: Connection, positions: range, arms: int, rng: random.Random) -> None:
    rows: dict[Table, list[dict[str, Any]]] = {
        table: [] for table in (schema.runs, schema.steps, schema.credits, schema.appraisals)
    }
    for position in positions:
        number, question = position + 1, position // arms
        right = rng.random() < 0.4 + 0.1 * (position % arms)
        rows[schema.runs].append(_run(number, question, right))
        rows[schema.steps] += [_step(number, place, rng) for place in range(len(KINDS))]
        rows[schema.credits] += _credits(number, rng)
        spent = {"input_tokens": 4000, "output_tokens": 100, "calls": 12, "seconds": 1.0}
        rows[schema.appraisals].append({"run": number, "provenance": 1, "measured": NOW, **spent})
    for table, found in rows.items():
        connection.execute(insert(table), found)
    items = schema.items
    for position in positions:
        failed = position % FAILING == FAILING - 1
        connection.execute(
            items.update()
            .where(items.c.experiment == 1, items.c.position == position)
            .values(
                status="failed" if failed else "ok",
                run=position + 1,
                attempts=1,
                error_type="ReaderError" if failed else None,
                error_message="the model failed" if failed else None,
            )
        )


def _run(number: int, question: int, right: bool) -> dict[str, Any]:
    said = f"person {question}" if right else f"the person {question + 1} of the north"
    return {
        "number": number,
        "id": f"run-{number}",
        "question": f"Who founded town {question}?",
        "answers": [f"person {question}"],
        "question_id": f"q{question}",
        "workflow": "ircot",
        "options": {},
        "reader": "hopland@synthetic",
        "retriever": "bm25@synthetic",
        "seed": 0,
        "answer": said,
        "status": "ok",
        "stop_reason": "answer_marker",
        "started": NOW,
        "seconds": 1.5,
        "trace_id": "",
        "span_id": "",
    }


def _step(number: int, place: int, rng: random.Random) -> dict[str, Any]:
    read = 0 if KINDS[place] == "retrieve" else rng.randrange(200, 900)
    return {
        "run": number,
        "position": place,
        "index": place,
        "name": KINDS[place],
        "kind": KINDS[place],
        "query": "Who founded it?" if KINDS[place] == "retrieve" else None,
        "output": None if KINDS[place] == "retrieve" else "It was founded by people.",
        "input_tokens": read,
        "output_tokens": read // 20,
        "calls": int(read > 0),
        "started": NOW,
        "seconds": 0.3,
        "span_id": "",
    }


def _credits(number: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    for meter in ("seper", "grogu"):
        whole = [(WHOLE_RUN, "level"), (WHOLE_RUN, "total")]
        parts = [(step, rule) for step in range(len(KINDS)) for rule in ("level", *RULES)]
        for step, rule in (*whole, *parts):
            yield {
                "run": number,
                "step": step,
                "passage": WHOLE_STEP,
                "rule": rule,
                "meter": meter,
                "provenance": 1,
                "value": rng.random(),
                "n": 10,
                "seed": 0,
                "estimator": "synthetic(weight=lennorm, golds=max, direction=max)",
                "certain": False,
            }


def time_command(arguments: list[str]) -> tuple[float, float]:
    """Seconds of the clock and of the processor."""
    before, begun = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "hopscope.cli", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ)
    seconds, after = time.perf_counter() - begun, getrusage(RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--arms", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found: dict[str, Any] = {"questions": asked.questions, "arms": asked.arms}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.db"
        fill(file, asked.questions, asked.arms)
        found["megabytes"] = round(file.stat().st_size / 1e6)
        compared = ["compare", NAME, "--db", str(file)]
        commands = {
            "hopscope --version": ["--version"],
            "compare": compared,
            "compare --by hops": [*compared, "--by", "hops"],
            "compare -t overview": [*compared, "-t", "overview"],
        }
        for name, command in commands.items():
            times = [time_command(command) for _ in range(asked.repeats)]
            found[name] = {
                "seconds": round(median(clock for clock, _ in times), 2),
                "processor seconds": round(median(used for _, used in times), 2),
            }
    if asked.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{asked.questions} questions by {asked.arms} arms, {found['megabytes']} MB")
    for name in commands:
        print(
            f"{name:24} {found[name]['seconds']:6.2f} s, processor "
            f"{found[name]['processor seconds']:.2f} s"
        )


if __name__ == "__main__":
    main()
