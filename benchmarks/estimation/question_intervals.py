"""Coverage of the intervals and error rates of the tests of `hopscope compare`, by simulation.

It draws many experiments from populations with a known mean: coverage is the share of 95 %
intervals that contain it, false alarms the share of p < .05 for two systems that do not differ.

    python benchmarks/estimation/question_intervals.py [--worlds 2000] [--json]
"""

import argparse
import json
from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from hopscope.tracing.statistics.over_questions import (
    Bootstrap,
    Column,
    Floats,
    differences,
    estimates,
)

SIZES = (10, 20, 50, 200)
LEVEL = 0.05
Population = tuple[float, Callable[[Generator, tuple[int, int]], Floats]]


def gains(rng: Generator, shape: tuple[int, int]) -> Floats:
    """Values like ΔSePer: 0 for most questions, a gain for the others."""
    return np.where(rng.random(shape) < 0.6, 0.0, rng.random(shape))


POPULATIONS: dict[str, Population] = {
    "normal": (0.0, lambda rng, shape: rng.normal(size=shape)),
    "skewed (exponential)": (1.0, lambda rng, shape: rng.exponential(size=shape)),
    "gains: 0 for 60 %": (0.2, gains),
}


def measure(worlds: int) -> dict[str, dict[int, dict[str, float]]]:
    found: dict[str, dict[int, dict[str, float]]] = {}
    for name, (mean, draw) in POPULATIONS.items():
        for size in SIZES:
            rng = np.random.default_rng(size)
            ones = np.ones(size)
            one, other = (
                [Column(row, ones, ones, ones) for row in draw(rng, (worlds, size))]
                for _ in range(2)
            )
            held = [
                each.low is not None and each.high is not None and each.low <= mean <= each.high
                for each in estimates(one, Bootstrap())
            ]
            alarms = [
                each.p is not None and each.p < LEVEL
                for each in differences(list(zip(one, other, strict=True)), Bootstrap())
            ]
            found.setdefault(name, {})[size] = {
                "coverage": float(np.mean(held)),
                "false alarms": float(np.mean(alarms)),
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = measure(asked.worlds)
    if asked.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{'population':22}" + "".join(f"{size:>16}" for size in SIZES))
    for name, of in found.items():
        cells = (f"{c['coverage']:.3f} / {c['false alarms']:.3f}" for c in of.values())
        print(f"{name:22}" + "".join(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    main()
