"""The store at size: bytes and time per step, and the time of `ls` and `show`.

It makes runs like IRCoT's, five retrievals of five passages each, with credits of two meters and
three rules, and saves them one by one. Then it lists and shows random runs, in this process and as
commands from their start, and prints the database's plans of their queries.

    python benchmarks/store.py [--steps 1000000] [--db URL|FILE] [--plans] [--json]
    python benchmarks/store.py --writes 500 [--db URL|FILE]       # one transaction after the other
"""

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from generated import passages

from hopscope.runtime.types import (
    Appraisal,
    Credit,
    Exchange,
    Generation,
    GenerationRequest,
    Hit,
    Measurement,
    Message,
    Passage,
    Prompt,
    Provenance,
    Question,
    Run,
    Step,
    Usage,
)
from hopscope.store.plans import plans
from hopscope.store.store import Store
from hopscope.tracing.reports.report import report

STARTED = datetime(2026, 1, 1, tzinfo=UTC)
CORPUS, HOPS, K, TOKENS = 50_000, 5, 5, 16
STEPS = 2 * HOPS
"""Of a run: a retrieval and a thought for each hop."""
LISTED, REPEATS, COMMANDS, BATCH = 20, 200, 10, 100
PROVENANCE = Provenance(reader="hopland@synthetic", entailment="lexical", settings={"samples": 10})


def runs(count: int, corpus: list[Passage], chance: random.Random) -> Iterator[Run]:
    for number in range(count):
        started = STARTED + timedelta(seconds=number)
        held: tuple[Passage, ...] = ()
        taken: list[Step] = []
        for hop in range(HOPS):
            found = chance.sample(corpus, K)
            held += tuple(found)
            new = tuple(passage.key for passage in found)
            taken += [
                Step(
                    index=len(taken),
                    name="retrieve",
                    kind="retrieve",
                    query=f"Who founded the town of question {number}, hop {hop}?",
                    ranked=tuple(Hit(passage=p, score=9.0 / (i + 1)) for i, p in enumerate(found)),
                    new=new,
                    evidence=held,
                    started=started,
                    seconds=0.01,
                ),
                Step(
                    index=len(taken) + 1,
                    name="reason",
                    kind="generate",
                    shown=tuple(passage.key for passage in held),
                    evidence=held,
                    exchanges=(_exchange(number, held, chance),),
                    output="It was founded by people from the north.",
                    usage=Usage(input_tokens=900, output_tokens=TOKENS, calls=1),
                    started=started,
                    seconds=0.3,
                ),
            ]
        yield Run(
            id=f"{chance.getrandbits(128):032x}",
            question=Question(text=f"Who founded the town of question {number}?", answers=("Ada",)),
            workflow=("ircot", "iter_retgen", "self_ask")[number % 3],
            options={"k": K, "max_steps": HOPS},
            reader=PROVENANCE.reader,
            retriever="bm25@synthetic",
            steps=tuple(taken),
            answer="people from the north",
            stop_reason="answer_marker",
            started=started,
            seconds=1.6,
        )


def _exchange(number: int, held: tuple[Passage, ...], chance: random.Random) -> Exchange:
    context = "\n\n".join(f"{p.title}\n{p.text}" for p in held)
    prompt = Prompt(
        messages=(
            Message(role="system", content="Reason step by step from the passages."),
            Message(role="user", content=f"{context}\n\nWho founded the town of {number}?"),
        ),
        shown=tuple(p.key for p in held),
    )
    generation = Generation(
        text="It was founded by people from the north.",
        tokens=tuple(f" t{i}" for i in range(TOKENS)),
        token_ids=tuple(chance.randrange(30_000) for _ in range(TOKENS)),
        logprobs=tuple(-chance.random() for _ in range(TOKENS)),
        entropies=tuple(chance.random() for _ in range(TOKENS)),
        usage=Usage(input_tokens=900, output_tokens=TOKENS, calls=1),
    )
    request = GenerationRequest(prompt=prompt, max_tokens=64)
    return Exchange(request=request, generations=(generation,), seconds=0.3)


def credits(run: Run, chance: random.Random) -> Iterator[Credit]:
    """Credits as by `hopscope run`: levels and totals, and each step by each rule."""
    whole: list[tuple[int | None, str]] = [(None, "level"), (None, "total")]
    rules = ("level", "trajectory", "shapley", "leave_one_out")
    parts = [(s.index, rule) for s in run.retrievals for rule in rules]
    for meter in ("seper", "grogu"):
        for step, rule in (*whole, *parts):
            value = Measurement(
                value=chance.random(), n=10, estimator="synthetic", low=0.0, high=1.0
            )
            yield Credit(
                run_id=run.id,
                step=step,
                rule=rule,
                meter=meter,
                measurement=value,
                provenance=PROVENANCE,
            )


def fill(store: Store, steps: int, chance: random.Random) -> list[str]:
    """Save this many steps. Returns the ids of their runs."""
    corpus = list(passages(CORPUS))
    found = runs(steps // STEPS, corpus, chance)
    ids: list[str] = []
    while batch := list(islice(found, BATCH)):
        store.save_all(batch)
        measured = [c for run in batch for c in credits(run, chance)]
        store.save_credits(measured, map(_appraisal, batch))
        ids += [run.id for run in batch]
        if sys.stderr.isatty():
            print(f"\r{len(ids) * STEPS} steps", end="", file=sys.stderr, flush=True)
    return ids


def write_rate(store: Store, count: int, chance: random.Random) -> dict[str, float]:
    """The speed at which one process saves finished runs with their credits one by one, by wall
    time and by processor time."""
    made = list(runs(count, list(passages(CORPUS // 10)), chance))
    measured = [(list(credits(run, chance)), _appraisal(run)) for run in made]
    begun, busy = time.perf_counter(), time.process_time()
    for run, (found, appraisal) in zip(made, measured, strict=True):
        store.save(run)
        store.save_credits(found, [appraisal])
    seconds, processor = time.perf_counter() - begun, time.process_time() - busy
    return {
        "runs": count,
        "steps": count * STEPS,
        "steps saved per second": round(count * STEPS / seconds),
        "steps saved per second of processor": round(count * STEPS / processor),
    }


def _appraisal(run: Run) -> Appraisal:
    return Appraisal(run_id=run.id, provenance=PROVENANCE, measured=STARTED)


def show(store: Store, run_id: str) -> None:
    run = store.load(run_id[:12])
    report(run, store.credits(run.id), store.appraisals(run.id)).model_dump_json()


def times(acts: Iterable[Callable[[], object]]) -> dict[str, float]:
    """Milliseconds of an action: the median and the 95th percentile."""
    taken = []
    for act in acts:
        begun = time.perf_counter()
        act()
        taken.append(1000 * (time.perf_counter() - begun))
    p50, p95 = np.percentile(taken, [50, 95])
    return {"p50": round(float(p50), 1), "p95": round(float(p95), 1)}


def command(*arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "hopscope.cli", *arguments], check=True, stdout=subprocess.DEVNULL
    )


def tables(file: Path) -> dict[str, int]:
    """Bytes of each table and index of a SQLite file, the largest first."""
    # dbstat's own sums have 32 bits.
    query = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC"
    with closing(sqlite3.connect(file)) as connection:
        return {name: int(size) for name, size in connection.execute(query)}


def measure(db: str, steps: int) -> dict[str, Any]:
    chance = random.Random(0)
    with Store.open(db) as store:
        begun = time.perf_counter()
        ids = fill(store, steps, chance)
        seconds = time.perf_counter() - begun
        some = [chance.choice(ids) for _ in range(REPEATS)]
        found: dict[str, Any] = {
            "runs": len(ids),
            "steps": len(ids) * STEPS,
            "seconds to save": round(seconds, 1),
            "steps saved per second": round(len(ids) * STEPS / seconds),
            "bytes per step": round(store.size() / (len(ids) * STEPS)),
            "milliseconds": {
                "ls, in process": times([lambda: store.runs(LISTED)] * REPEATS),
                "show, in process": times([lambda i=i: show(store, i) for i in some]),  # type: ignore[misc]
            },
            "plans": {
                plan.sql: plan.steps
                for act in (lambda: store.runs(LISTED), lambda: show(store, ids[0]))
                for plan in plans(store, act)
            },
        }
    for name, arguments in {
        "hopscope --help": [["--help"]] * COMMANDS,
        "hopscope ls": [["ls", "--db", db]] * COMMANDS,
        "hopscope show": [["show", run_id, "--db", db] for run_id in some[:COMMANDS]],
    }.items():
        found["milliseconds"][name] = times([lambda a=a: command(*a) for a in arguments])  # type: ignore[misc]
    if "://" not in db:
        found["bytes per step by table"] = {
            name: round(size / found["steps"], 1) for name, size in tables(Path(db)).items()
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--db", help="an empty database to fill and keep; else a file for a while")
    parser.add_argument("--writes", type=int, metavar="RUNS", help="only save runs, one by one")
    parser.add_argument("--plans", action="store_true", help="print the queries' plans as well")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db = given.db or str(Path(folder) / "runs.db")
        if given.writes:
            with Store.open(db) as store:
                print(json.dumps(write_rate(store, given.writes, random.Random(0)), indent=2))
            return
        found = measure(db, max(STEPS, given.steps))
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        if not isinstance(value, dict):
            print(f"{name:26}{value:>12}")
    print("\nmilliseconds                       p50       p95")
    for name, value in found["milliseconds"].items():
        print(f"{name:26}{value['p50']:>12}{value['p95']:>10}")
    print("\nbytes per step of")
    for name, size in islice(found.get("bytes per step by table", {}).items(), 12):
        print(f"{name:34}{size:>8}")
    for sql, taken in found["plans"].items() if given.plans else ():
        print(f"\n{' '.join(sql.split())}")
        for step in taken:
            print(f"    {step}")


if __name__ == "__main__":
    main()
