"""How much of a learned `value` policy survives another workflow and reader, on Hopland.

    PYTHONPATH=benchmarks python benchmarks/experiments/transfer.py [--train 150] [--limit 150]
        [--few 50] [--draws 2] [--seed 0] [--threads 32] [--json]

A policy learns from `--train` questions of each source, a workflow with a reader, and is tried on
`--limit` questions of each target, in another world. Three more learn from all other sources: by
themselves, with `--few` of the target's learning questions (`budget fit --adapt`), and from these
few alone; the few are drawn `--draws` times. Questions, worlds and abstentions are those of
`benchmarks/budget.py`; a source's threshold of abstaining belongs to its answers, not to the
policy. The worth of a policy is the area of its frontier over tokens above that of the coin
(`random`). Intervals are those of the bootstrap over the target's questions, the same ones drawn
for all policies.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path as File
from typing import Any, NamedTuple

import numpy as np
from budget import OTHER, OWN, best_threshold, collect, together, walks
from numpy.typing import NDArray

from hopscope.api import parts
from hopscope.lab import hopland
from hopscope.lab.budget import fit
from hopscope.lab.budget.fit import Fitting
from hopscope.lab.budget.frontier import area, upper_hull
from hopscope.lab.budget.paths import Path
from hopscope.lab.budget.promises.following import by_threshold
from hopscope.lab.budget.stored import Walked
from hopscope.lab.budget.sweeps import SETTINGS
from hopscope.runtime import components
from hopscope.runtime.ports import Reader
from hopscope.runtime.specs import Spec
from hopscope.tracing import policies
from hopscope.tracing.statistics.intervals import quantiles

Floats = NDArray[np.float64]
RESAMPLES = 300
QUICK = Fitting(trees=25, prices=10, between=0)


class Source(NamedTuple):
    workflow: str
    reader: str
    label: str


SMALL = f"hf:{File(hopland.__file__).parent / 'small'}"
SOURCES = (
    Source("ircot", parts.TINY, "IRCoT"),
    Source("ircot", SMALL, "IRCoT, smaller reader"),
    Source("iter_retgen", parts.TINY, "Iter-RetGen"),
    Source("flare", parts.TINY, "FLARE"),
    Source("self_ask", parts.TINY, "Self-Ask"),
    Source("search_agent", f"{parts.TINY}:search", "search agent"),
)
OWN_POLICY, OTHERS, ADAPTED, FEW = "its own", "all others", "and the few", "the few alone"


class Points(NamedTuple):
    """A policy at all its settings, (setting, question)."""

    costs: Floats
    utilities: Floats


class Target(NamedTuple):
    """A source as it is learned from and as it is tried on."""

    source: Source
    learning: list[Path]
    tried: list[Path]
    coin: Points
    weights: Floats
    """(resample, question); the first is the sample."""


def gathered(source: Source, given: argparse.Namespace) -> Target:
    with together(source.reader, given.threads) as by:
        learning = collect(OTHER + given.seed, given.train, source.workflow, by)
        threshold = best_threshold(learning)
        known = [each.path for each in walks(learning, by, threshold, 1.0)]
        asked = collect(OWN + given.seed, given.limit, source.workflow, by)
        judged = walks(asked, by, threshold, 1.0)
        coin = tossed(judged, by.reader)
    count = len(judged)
    rng = np.random.default_rng(given.seed)
    draws = rng.multinomial(count, [1 / count] * count, RESAMPLES)
    weights = np.vstack([np.ones((1, count)), draws]) / count
    return Target(source, known, [each.path for each in judged], coin, weights)


def tossed(walked: Sequence[Walked], reader: Reader) -> Points:
    rows = []
    for setting in SETTINGS["random"]:
        coin = components.named(policies, Spec("random", setting))()
        stops = [
            next((t for t, m in enumerate(w.moments) if not coin.decide(m, reader).retrieve), -1)
            for w in walked
        ]
        rows.append([w.path.stops[stop] for w, stop in zip(walked, stops, strict=True)])
    return Points(
        np.array([[each.tokens for each in row] for row in rows], float),
        np.array([[each.utility for each in row] for row in rows], float),
    )


def learned(paths: Sequence[Path], on: Target, *, adapt: Sequence[Path] = ()) -> Floats:
    """Area of the frontier above the coin's, by resample."""
    tried = fit.try_prices(paths, QUICK, adapt=adapt)
    return above(tried, on)


def above(tried: Sequence[fit.PriceOutcome], on: Target) -> Floats:
    found = by_threshold([fit.value_file(each, utility="") for each in tried], on.tried)
    native = np.array([path.stops[-1].utility for path in on.tried])
    return areas(Points(found.costs, native - found.values["loss"]), on) - areas(on.coin, on)


def areas(points: Points, on: Target) -> Floats:
    """By resample, of the hull with never retrieving and the workflow's own stop."""
    ends = [[path.stops[place] for path in on.tried] for place in (0, -1)]
    costs = np.vstack([points.costs, [[each.tokens for each in row] for row in ends]])
    utilities = np.vstack([points.utilities, [[each.utility for each in row] for row in ends]])
    found = []
    for cost, utility in zip(on.weights @ costs.T, on.weights @ utilities.T, strict=True):
        hull = upper_hull(list(zip(cost.tolist(), utility.tolist(), strict=True)))
        found.append(area(hull, cost[-2], cost[-1]))
    return np.array(found)


def measured(targets: Sequence[Target], given: argparse.Namespace) -> dict[str, list[Floats]]:
    """The worth of policies by what they learned from, for each target."""
    own = [fit.try_prices(each.learning, QUICK) for each in targets]
    found = {
        each.source.label: [above(tried, on) for on in targets]
        for each, tried in zip(targets, own, strict=True)
    }
    found[OWN_POLICY] = [found[each.source.label][place] for place, each in enumerate(targets)]
    found |= {OTHERS: [], ADAPTED: [], FEW: []}
    for on in targets:
        others = [path for each in targets if each is not on for path in each.learning]
        found[OTHERS].append(learned(others, on))
        drawn: list[tuple[Floats, Floats]] = []
        for draw in range(given.draws):
            places = np.random.default_rng([given.seed, draw]).permutation(len(on.learning))
            few = [on.learning[place] for place in places[: given.few]]
            drawn.append((learned(others, on, adapt=few), learned(few, on)))
            print(f"{on.source.label}, draw {draw + 1}", file=sys.stderr, flush=True)
        for name, rows in zip((ADAPTED, FEW), zip(*drawn, strict=True), strict=True):
            found[name].append(np.mean(rows, axis=0))
    return found


def told(values: Floats) -> dict[str, float]:
    low, high = quantiles(values[1:])
    return {"value": float(values[0]), "low": low, "high": high}


def report(found: dict[str, list[Floats]], targets: Sequence[Target]) -> dict[str, Any]:
    own = found[OWN_POLICY]
    mean = {name: np.mean(rows, axis=0) for name, rows in found.items()}
    return {
        "above_the_coin": {
            name: {t.source.label: told(row) for t, row in zip(targets, rows, strict=True)}
            for name, rows in found.items()
        },
        "less_its_own": {
            name: {
                t.source.label: told(row - base)
                for t, row, base in zip(targets, rows, own, strict=True)
            }
            for name, rows in found.items()
        },
        "mean": {name: told(rows) for name, rows in mean.items()},
        "mean_less_its_own": {name: told(rows - mean[OWN_POLICY]) for name, rows in mean.items()},
        "mean_of_the_few_beside_all_others": told(mean[ADAPTED] - mean[OTHERS]),
        "regained": regained(found, range(len(targets))),
        "regained_where_less": regained(
            found,
            [
                place
                for place, (row, base) in enumerate(zip(found[OTHERS], own, strict=True))
                if told(row - base)["high"] < 0
            ],
        ),
    }


def regained(found: dict[str, list[Floats]], places: Sequence[int]) -> dict[str, float] | None:
    """The share of the difference between all others and the own policies that the few regain."""
    if not places:
        return None
    zero, some, full = (
        np.mean([found[name][place] for place in places], axis=0)
        for name in (OTHERS, ADAPTED, OWN_POLICY)
    )
    return told((some - zero) / (full - zero))


def show(rows: dict[str, Any]) -> None:
    for name, cells in rows["above_the_coin"].items():
        own = rows["above_the_coin"][OWN_POLICY]
        print(f"learned from {name}: above the coin {spelled(rows['mean'][name])} in the mean")
        for target, cell in cells.items():
            share = cell["value"] / own[target]["value"]
            less = spelled(rows["less_its_own"][name][target])
            print(f"  {target:22} {spelled(cell)}  {share:5.2f} of its own, less it {less}")
        print(f"  {'mean less its own':22} {spelled(rows['mean_less_its_own'][name])}")
    print(f"the few beside all others: {spelled(rows['mean_of_the_few_beside_all_others'])}")
    for name in ("regained", "regained_where_less"):
        if rows[name] is not None:
            print(f"{name}: {spelled(rows[name])}")


def spelled(cell: dict[str, float]) -> str:
    return f"{cell['value']:+.3f} [{cell['low']:+.3f}, {cell['high']:+.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=int, default=150, help="questions learned from")
    parser.add_argument("--limit", type=int, default=150, help="questions tried on")
    parser.add_argument("--few", type=int, default=50, help="questions to adapt to")
    parser.add_argument("--draws", type=int, default=2, help="of the few")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=32, help="questions at a time")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    targets = [gathered(each, given) for each in SOURCES]
    rows = report(measured(targets, given), targets)
    if given.json:
        json.dump(rows, sys.stdout, indent=2)
    else:
        show(rows)


if __name__ == "__main__":
    main()
