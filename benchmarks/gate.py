"""The gate on outcomes of Hopland: false alarms without a difference, and power for planted drops.

The embedded reader answers and measures questions of Hopland twice, with two seeds, and once
without retrieval. A replay draws questions with replacement and lets the two outcomes of each
question change places with chance 1/2, so that nothing differs but chance; then it tests as
`hopscope gate` does. A drop is planted in two ways: answers break (the score becomes 0), or
retrieval breaks (the outcome becomes that of closed_book), for as many questions as make the wanted
mean drop.

    python benchmarks/gate.py [--questions 200] [--replays 1000] [--db FILE] [--json]
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

import hopscope
from hopscope.lab.gate.outcomes import Outcomes, of_experiment
from hopscope.runtime.types import Measurement
from hopscope.store.store import Store
from hopscope.tracing.statistics.drops import drops, power
from hopscope.tracing.statistics.intervals import clopper_pearson
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, Floats, holm

METRICS = ("exact_match", "f1", "seper")
SIZES = (50, 100, 200)
DROPS = (0.05, 0.1)
LEVEL = 0.05
SAMPLES = 20
RESAMPLES = 999


class Pool(NamedTuple):
    """Outcomes of the same questions, (metric, question)."""

    one: Floats
    other: Floats
    """The same system with another seed."""
    worse: Floats
    """Without retrieval."""


def outcomes(file: Path, questions: int) -> list[Outcomes]:
    for seed in (0, 1):
        with hopscope.Session(
            store=file, seed=seed, meters=["seper"], rules=["trajectory"]
        ) as session:
            hopscope.evaluate(
                session,
                "hopland:test",
                workflows=["closed_book", "naive"],
                limit=questions,
                name=f"seed-{seed}",
                retry_failed=True,
            )
    with Store.open(file) as store:
        return [of_experiment(store, f"seed-{seed}", METRICS) for seed in (0, 1)]


def pooled(one: Outcomes, other: Outcomes) -> Pool:
    """The questions that all measured."""
    keys = [
        question.key
        for question in one.questions
        if not any(
            isinstance(of.value(workflow, metric, question.key), str)
            for of, workflow in ((one, "naive"), (other, "naive"), (one, "closed_book"))
            for metric in METRICS
        )
    ]

    def values(of: Outcomes, workflow: str) -> Floats:
        return np.array(
            [[of.value(workflow, metric, key) for key in keys] for metric in METRICS], float
        )

    return Pool(values(one, "naive"), values(other, "naive"), values(one, "closed_book"))


def column(values: Floats, metric: str) -> Column:
    ones = np.ones(len(values))
    return Column(values, ones, ones, ones, binary=metric == "exact_match")


def exchanged(
    one: Floats, other: Floats, size: int, rng: Generator
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """The two sides of a replay, (metric, question), and the positions of its questions."""
    drawn = rng.integers(0, one.shape[1], size)
    side = rng.integers(0, 2, size).astype(bool)
    first, second = one[:, drawn], other[:, drawn]
    return np.where(side, second, first), np.where(side, first, second), drawn


def alarms(
    one: Floats, other: Floats, size: int, *, allowed: float, replays: int, broken: bool = False
) -> float:
    """The share of replays in which the gate fails; with `broken`, answers break so that the true
    drop is the allowed one."""
    rng = np.random.default_rng(size)
    pairs = []
    for _ in range(replays):
        before, after, _ = exchanged(one, other, size, rng)
        if broken:
            lost = rng.random(size) < allowed / ((one.mean(1) + other.mean(1)) / 2)[:, None]
            after = np.where(lost, 0.0, after)
        pairs += [
            (column(before[i], name), column(after[i], name)) for i, name in enumerate(METRICS)
        ]
    found = [
        each.p for each in drops(pairs, [allowed] * len(pairs), Bootstrap(resamples=RESAMPLES))
    ]
    count = len(METRICS)
    families = (holm(found[start : start + count]) for start in range(0, len(found), count))
    return float(np.mean([any(p is not None and p <= LEVEL for p in each) for each in families]))


def found(
    pool: Pool, metric: int, size: int, drop: float, *, retrieval: bool, replays: int
) -> float | None:
    """The share of replays in which a planted drop is found, by a gate of one metric; None if it
    is too large to be planted so."""
    rng = np.random.default_rng(size)
    mean = (pool.one[metric].mean() + pool.other[metric].mean()) / 2
    floor = pool.worse[metric].mean() if retrieval else 0.0
    if drop > mean - floor:
        return None
    pairs = []
    for _ in range(replays):
        before, after, drawn = exchanged(pool.one, pool.other, size, rng)
        worse = pool.worse[metric][drawn] if retrieval else 0.0
        lost = rng.random(size) < drop / (mean - floor)
        name = METRICS[metric]
        pairs.append(
            (column(before[metric], name), column(np.where(lost, worse, after[metric]), name))
        )
    tested = drops(pairs, [0.0] * len(pairs), Bootstrap(resamples=RESAMPLES))
    return float(np.mean([each.p is not None and each.p <= LEVEL for each in tested]))


def promised(
    pool: Pool, metric: int, size: int, drop: float, drawn: NDArray[np.int64]
) -> Measurement:
    """The promise of a gate that saw these questions of the pool."""
    sides = (column(side[metric][drawn], METRICS[metric]) for side in (pool.one, pool.other))
    return power(*sides, allowed=0.0, drop=drop, level=LEVEL, questions=size, search=False).chance


def samples(pool: Pool, metric: int, size: int, drop: float) -> tuple[float, float, float] | None:
    """Median, 5th and 95th percentile of the promises of gates that each saw a sample."""
    rng = np.random.default_rng(size)
    drawn = (rng.integers(0, pool.one.shape[1], size) for _ in range(SAMPLES))
    promises = [promised(pool, metric, size, drop, each).value for each in drawn]
    known = [each for each in promises if each is not None]
    if not known:
        return None
    low, middle, high = np.quantile(known, (0.05, 0.5, 0.95))
    return float(middle), float(low), float(high)


def measure(pool: Pool, replays: int) -> dict[str, list[dict[str, object]]]:
    alarmed: list[dict[str, object]] = []
    for name, other in (("two seeds", pool.other), ("with and without retrieval", pool.worse)):
        for size in SIZES:
            for allowed, at_limit in ((0.0, False), (0.02, False), (0.02, True)):
                share = alarms(
                    pool.one, other, size, allowed=allowed, replays=replays, broken=at_limit
                )
                alarmed.append(
                    {
                        "outcomes exchanged": name,
                        "questions": size,
                        "allowed": allowed,
                        "true drop": allowed if at_limit else 0.0,
                        "alarms": share,
                    }
                )
    powers: list[dict[str, object]] = []
    for size in SIZES:
        for place, metric in enumerate(METRICS):
            for drop in DROPS:
                promise = promised(pool, place, size, drop, np.arange(pool.one.shape[1]))
                broken, lost = (
                    found(pool, place, size, drop, retrieval=retrieval, replays=replays)
                    for retrieval in (False, True)
                )
                powers.append(
                    {
                        "metric": metric,
                        "questions": size,
                        "drop": drop,
                        "promised": (promise.value, promise.low, promise.high),
                        "found, answers broken": interval(broken, replays),
                        "found, retrieval broken": interval(lost, replays),
                        "promised by samples": samples(pool, place, size, drop),
                    }
                )
    return {"alarms": alarmed, "powers": powers}


def interval(share: float | None, replays: int) -> tuple[float, float, float] | None:
    return None if share is None else (share, *clopper_pearson(share, replays))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--replays", type=int, default=1000)
    parser.add_argument("--db", type=Path, help="a database to keep the outcomes in")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        one, other = outcomes(asked.db or Path(folder, "runs.db"), asked.questions)
    pool = pooled(one, other)
    result = measure(pool, asked.replays)
    if asked.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{pool.one.shape[1]} questions, {asked.replays} replays")
    for rows in result.values():
        print("| " + " | ".join(rows[0]) + " |")
        print("|" + "---|" * len(rows[0]))
        for row in rows:
            print("| " + " | ".join(map(told, row.values())) + " |")


def told(cell: object) -> str:
    if isinstance(cell, tuple):
        return "-" if cell[0] is None else f"{cell[0]:.3f} [{cell[1]:.3f}, {cell[2]:.3f}]"
    if isinstance(cell, float):
        return f"{cell:.3f}"
    return "-" if cell is None else str(cell)


if __name__ == "__main__":
    main()
