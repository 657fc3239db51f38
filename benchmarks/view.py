"""The local view over a large database: the time of its pages, at the server and in a browser.

It saves `--seed-runs` measured runs of one to three retrievals, then copies their rows, with other
questions and answers, until there are `--runs`, and asks for each page several times, and once for
each picture of the experiment.

    python benchmarks/view.py [--runs 100000] [--browser /usr/bin/chromium] [--db FILE] [--json]
"""

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from generated import passages
from starlette.testclient import TestClient

from hopscope.runtime.types import (
    Appraisal,
    Hit,
    Measurement,
    Passage,
    Provenance,
    Question,
    Run,
    Step,
    Usage,
)
from hopscope.store.experiments.records import Arm, DatasetEntry, Experiment
from hopscope.store.runs.browsing import RunQuery
from hopscope.store.store import Store
from hopscope.tracing.appraisal import share
from hopscope.tracing.credit import shapley, trajectory
from hopscope.tracing.games.frozen import over_steps
from hopscope.view.experiment_page import PICTURES
from hopscope.view.server.app import application
from hopscope.view.server.guarding import names

STARTED = datetime(2026, 1, 1, tzinfo=UTC)
NAME, ARMS, HOPS, K = "large", ("naive", "ircot"), 3, 5
SETTINGS = Provenance(reader="synthetic", settings={"counterfactual": "empty", "mode": "frozen"})
OFFSETS = {
    "runs": ("number",),
    "steps": ("run",),
    "placements": ("run",),
    "credits": ("run",),
    "totals": ("run",),
    "appraisals": ("run",),
    "questions": ("number",),
    "items": ("run", "question", "position"),
    "games": ("number", "run"),
    "coalition_values": ("game",),
}
"""The columns of each table that are another number in a copy."""
HOMES = {"run": "runs", "question": "questions", "game": "games", "position": "runs"}
"""The table whose rows a column counts."""
OWN = {"runs": "run", "questions": "question", "games": "game"}
UNIQUE = {"runs": "id", "questions": "hash"}
OTHER = {
    ("runs", "question"): "question || ' ' || copy",
    ("runs", "answers"): """replace(answers, '"]', ' ' || copy || '"]')""",
    ("runs", "answer"): "answer || ' ' || copy",
    ("questions", "text"): "text || ' ' || copy",
    ("questions", "answers"): """replace(answers, '"]', ' ' || copy || '"]')""",
}
"""Texts that differ in each copy: no question is asked twice of a workflow."""
TIMES, FRESH = 15, 5


class Synthetic:
    """A meter whose values follow from the passages."""

    def __init__(self, name: str) -> None:
        self.name = name

    def measure(self, question: Question, evidences: Any) -> list[Measurement]:
        return [
            Measurement(
                value=random.Random(f"{self.name}{question.text}{len(evidence)}").random(),
                low=0.0,
                high=1.0,
                n=10,
                seed=0,
                estimator="synthetic",
            )
            for evidence in evidences
        ]


def a_run(number: int, question: Question, arm: str, corpus: list[Passage]) -> Run:
    chance = random.Random(number)
    held: tuple[Passage, ...] = ()
    steps = []
    for hop in range(HOPS if arm == "ircot" else 1):
        found = tuple(chance.sample(corpus, K))
        held += found
        steps.append(
            Step(
                index=hop,
                name="retrieve",
                kind="retrieve",
                query=f"{question.text} {hop}",
                ranked=tuple(Hit(passage=p, score=9.0 / (i + 1)) for i, p in enumerate(found)),
                new=tuple(p.key for p in found),
                shown=tuple(p.key for p in found),
                evidence=held,
                usage=Usage(input_tokens=900, output_tokens=20, calls=1),
                started=STARTED,
                seconds=0.3,
            )
        )
    return Run(
        id=f"{chance.getrandbits(128):032x}",
        question=question,
        workflow=arm,
        reader="synthetic",
        retriever="bm25:synthetic",
        steps=tuple(steps),
        answer=chance.choice(["Ada", "Ben", "Cleo"]),
        started=STARTED + timedelta(seconds=number),
        seconds=chance.random(),
    )


def fill(file: Path, seed_runs: int) -> None:
    corpus = list(passages(1000))
    with Store.open(file) as store:
        entries = [
            DatasetEntry(question=Question(text=f"Who founded town {i}?", answers=("Ada",)), hops=2)
            for i in range(seed_runs // len(ARMS))
        ]
        plan = Experiment(
            name=NAME,
            settings={},
            reader="synthetic",
            retriever="bm25:synthetic",
            entailment="lexical",
            seed=0,
            fingerprint="f",
            created=STARTED,
            arms=tuple(Arm(label=arm, workflow=arm, settings={}) for arm in ARMS),
        )
        store.experiments.add(plan, entries)
        session = store.experiments.begin_session(NAME, owner="here", environment={})
        rules = [trajectory.build(), shapley.build()]
        for claimed in store.experiments.claim(session, seed_runs):
            run = a_run(claimed.position, claimed.entry.question, claimed.arm.workflow, corpus)
            meters = [Synthetic("seper"), Synthetic("grogu")]
            found = share(run, meters, rules, SETTINGS, games=[over_steps(run)])
            measured = Appraisal(run_id=run.id, provenance=SETTINGS, measured=STARTED)
            store.experiments.complete(
                session,
                claimed,
                run,
                credits=found.credits,
                appraisals=[measured],
                games=found.games,
            )
        store.experiments.end_session(session)


def copy(file: Path, times: int) -> None:
    """Add that many copies of all runs with their rows, under other numbers and ids."""
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("PRAGMA foreign_keys = OFF")
        sizes = {
            name: database.execute(f"SELECT MAX(number) FROM {table}").fetchone()[0]
            for name, table in HOMES.items()
        }
        for table, numbers in OFFSETS.items():
            taken = {name: f'"{name}" + copy * {sizes[name]}' for name in numbers if name in sizes}
            if "number" in numbers:
                taken["number"] = f"number + copy * {sizes[OWN[table]]}"
            if table in UNIQUE:
                own = UNIQUE[table]
                taken[own] = f"printf('%07x', copy) || substr({own}, 8)"
            taken |= {name: text for (of, name), text in OTHER.items() if of == table}
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            chosen = ", ".join(taken.get(name, f'"{name}"') for name in columns)
            database.execute(f"CREATE TEMP TABLE old AS SELECT * FROM {table}")
            database.execute(
                "WITH RECURSIVE copies(copy) AS (SELECT 1 UNION ALL SELECT copy + 1 FROM copies "
                f"WHERE copy < {times}) INSERT INTO {table} SELECT {chosen} FROM copies, old"
            )
            database.execute("DROP TABLE old")
        database.execute("ANALYZE")


class Taken(NamedTuple):
    """Seconds of requests."""

    page: str
    median: float
    largest: float
    processor: float | None = None
    """The median of the server's processor time, which other work on the machine does not change;
    None where it was not measured."""


def timed(page: str, ask: Callable[[], Any], times: int = TIMES) -> Taken:
    walls, processors = [], []
    for _ in range(times):
        begun, spent = time.perf_counter(), time.process_time()
        ask()
        walls.append(time.perf_counter() - begun)
        processors.append(time.process_time() - spent)
    return Taken(page, median(walls), max(walls), median(processors))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed-runs", type=int, default=200)
    parser.add_argument("--browser", help="a Chromium, to measure the first paint")
    parser.add_argument(
        "--db", type=Path, help="a file to fill and keep; one that is there is used"
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = given.db or Path(folder, "runs.db")
        if not file.exists():
            fill(file, given.seed_runs)
            copy(file, given.runs // given.seed_runs - 1)
        found = [_fresh(file), *_served(file)]
        if given.browser:
            found += _painted(file, given.browser)
        size = file.stat().st_size
        with Store.open(file, reading=True) as store:
            runs = store.page(RunQuery()).total
    if given.json:
        rows = [row._asdict() for row in found]
        print(json.dumps({"runs": runs, "bytes": size, "pages": rows}, indent=2))
        return
    print(f"{runs:,} runs, {size / 1e6:.0f} MB; milliseconds: median, largest, of processor time")
    for page, middle, largest, processor in found:
        spent = "" if processor is None else f"{1000 * processor:9,.0f}"
        print(f"{page:<38}{1000 * middle:9,.0f}{1000 * largest:9,.0f}{spent}")


def _served(file: Path) -> list[Taken]:
    """Times at the server."""
    found = []
    with Store.open(file) as store:
        app = application(store, hosts=names("127.0.0.1", 80))
        client = TestClient(app, base_url="http://127.0.0.1")
        ids = store.ids()
        chance = random.Random(0)
        pages: dict[str, Callable[[], str]] = {
            "list": lambda: "/",
            "list, page 500": lambda: "/?page=500",
            "list, filtered by arm and hops": lambda: f"/?experiment={NAME}&arm=ircot&hops=2",
            "list, searched": lambda: "/?search=town+7",
            "list, ordered by credit": lambda: "/?sort=gain",
            "list, losses": lambda: "/?gain=negative",
            "run": lambda: f"/runs/{chance.choice(ids)}",
            "experiment, before its pictures": lambda: f"/experiments/{NAME}",
        }

        def asked(path: Callable[[], str]) -> Callable[[], None]:
            def ask() -> None:
                assert client.get(path()).status_code == 200

            return ask

        for name, path in pages.items():
            asked(path)()
            found.append(timed(name, asked(path)))
        for again in ("", " again"):
            for figure in (*PICTURES, "tables"):
                ask = asked(partial("/fragments/{}/{}".format, figure, NAME))
                found.append(timed(f"its {figure}{again}", ask, TIMES if again else 1))
    return found


def _view(file: Path) -> list[str]:
    return [sys.executable, "-m", "hopscope.cli", "view", "--port", "0", "--db", str(file)]


def _address(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    return process.stderr.readline().split(" at ")[1].split()[0]


def _fresh(file: Path) -> Taken:
    """The first request of a server that was just started, once for each start."""
    walls = []
    for _ in range(FRESH):
        with subprocess.Popen(_view(file), stderr=subprocess.PIPE, text=True) as process:
            address = _address(process)
            begun = time.perf_counter()
            with urllib.request.urlopen(address) as answer:
                answer.read()
            walls.append(time.perf_counter() - begun)
            process.terminate()
    return Taken("list, the first request of a server", median(walls), max(walls))


def _painted(file: Path, browser: str) -> list[Taken]:
    """Times until the browser paints a page for the first time, of a fresh server and later."""
    from playwright.sync_api import sync_playwright

    first: list[float] = []
    later: list[float] = []
    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for _ in range(FRESH):
            with subprocess.Popen(_view(file), stderr=subprocess.PIPE, text=True) as process:
                address = _address(process)
                for taken in (first, later, later, later):
                    page = opened.new_page()
                    page.goto(address)
                    entry = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
                    page.wait_for_load_state("load")
                    page.wait_for_timeout(200)
                    taken.append(page.evaluate(entry) / 1000)
                    page.close()
                process.terminate()
        opened.close()
    return [
        Taken("list, first paint of a fresh server", median(first), max(first)),
        Taken("list, first paint", median(later), max(later)),
    ]


if __name__ == "__main__":
    main()
