"""Whether promises of policies hold, what they cost, and what a check says under a shift.

Half of the questions teach the policies; the other half is taken as the population, whose risks are
thereby known. Calibrations are drawn from it with replacement, and each chooses its price. Reported
are the share of calibrations whose choice keeps the limit in the population, the share that promise
anything, and the mean cost beside the oracle's, the cheapest price that keeps the limit, and that
of always retrieving.

    export PYTHONPATH=benchmarks
    python benchmarks/estimation/promise.py --data FOLDER [--db FILE --experiment EXP
        [--fresh EXP] [--other EXP]]

Without an experiment of IRCoT on Hopland only the router is measured. `--fresh` is an experiment on
other questions, and `--other` one on other questions by another reader: a promise learned from
EXP is checked on both. The signals of an experiment take a few minutes; all else takes three of one
processor.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray
from research_data import add_option, missing
from scipy.stats import binom

from hopscope.lab.budget import fit, outcomes
from hopscope.lab.budget.fit import Fitting
from hopscope.lab.budget.outcomes import Outcomes
from hopscope.lab.budget.paths import Path as Walk
from hopscope.lab.budget.promises import checking, choosing, guarantee, routers
from hopscope.lab.budget.promises.checking import Check
from hopscope.lab.budget.promises.choosing import RisksByThreshold
from hopscope.lab.budget.promises.following import by_threshold
from hopscope.lab.budget.routing.fitting import asked, learn
from hopscope.lab.budget.stored import Walks, of_experiment
from hopscope.runtime.errors import UsageError
from hopscope.tracing.learned.promise import Risk
from hopscope.tracing.statistics import betting

Floats = NDArray[np.float64]
FILE = "llama8b_routes_dev.jsonl"
MANY_HOPS = ("hotpotqa", "2wikimultihopqa", "musique")
CALIBRATIONS = 1000
LIMITS = (0.02, 0.05)
SIZES = (250, 500, 1500)
STREAMS, LOOKS, EVERY = 1000, 40, 50
DRAWS, FRESH = 20, 300
FEW = 100
"""Of an experiment's fresh questions."""
SHIFT_LIMITS = ("loss<=.1",)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--db")
    parser.add_argument("--experiment")
    parser.add_argument("--fresh")
    parser.add_argument("--other")
    given = parser.parse_args()
    show(bounds_compared())
    if reason := missing(given.data, [FILE]):
        print(f"no router: {reason}")
    else:
        rows = outcomes.read([given.data / FILE])
        show(of_router(rows))
        show(router_shifts(rows))
    if given.experiment:
        walks = of_experiment(given.db, given.experiment, None, "correctness")
        paths = [each.path for each in walks.paths]
        show(of_paths(paths))
        show(path_shifts(paths))
        named = {"the same reader": given.fresh, "another reader": given.other}
        checked = {
            f"{where}, {name}": of_experiment(given.db, name, None, "correctness")
            for where, name in named.items()
            if name
        }
        show(reader_shifts(paths, checked))


def show(lines: Iterator[str]) -> None:
    for line in lines:
        print(line, flush=True)


def bounds_compared() -> Iterator[str]:
    """Questions needed for loss<=.02@.95 where nothing is lost on average: 4 % won, 4 % lost."""
    values = np.repeat([1.0, -1.0, 0.0], [4, 4, 92])
    other = next(n for n in range(50, 100_000, 50) if hoeffding_bentkus(0.0, 0.02, n) <= 0.05)
    yield f"questions needed: {betting.needed(values, 0.02)} by betting, {other} by Bentkus' bound"


def hoeffding_bentkus(mean: float, limit: float, count: int) -> float:
    """The p-value of Bates and others 2021, for differences of scores."""
    found, null = (mean + 1) / 2, (limit + 1) / 2
    low = min(found, null)
    divergence = low * np.log(low / null) + (1 - low) * np.log((1 - low) / (1 - null))
    bentkus = np.e * binom.cdf(ceil(count * found), count, null)
    return float(min(np.exp(-count * divergence), bentkus))


def of_router(rows: Outcomes) -> Iterator[str]:
    halves = guarantee.split(len(rows.rows), 0)
    learned = learn(rows.of(halves.learning))
    own, rest = (routers.fitted_to(rows.of(each), learned.file) for each in halves)
    prices = [point.price for point in learned.file.frontier]
    predicted = learned.file.predict([asked(row) for row in rest.rows])
    found = routers.by_price(rest, predicted, prices)
    always = routers.always(rest)
    yield from resampled("router", routers.by_price(own, learned.predicted, prices), found, always)
    yield from streams("router", found)


def of_paths(paths: Sequence[Walk]) -> Iterator[str]:
    halves = guarantee.split(len(paths), 0)
    own, rest = ([paths[place] for place in each] for each in halves)
    tried = fit.try_prices(own, Fitting())
    files = [fit.value_file(each, utility="correctness") for each in tried]
    found = by_threshold(files, rest)
    always = guarantee.always(rest, found)
    yield from resampled("value", by_threshold(files, own), found, always)
    yield from streams("value", found)


def resampled(
    name: str, learned: RisksByThreshold, found: RisksByThreshold, always: RisksByThreshold
) -> Iterator[str]:
    losses, costs = found.values["loss"].mean(axis=1), found.costs.mean(axis=1)
    dearest = float(always.costs.mean())
    for limit in LIMITS:
        risks = [Risk.parse(f"loss<={limit}")]
        order = choosing.sequence(learned, risks, {})
        oracle = min([dearest, *costs[losses <= limit].tolist()])
        for size in SIZES:
            rng = np.random.default_rng(0)
            ends = []
            for _ in range(CALIBRATIONS):
                drawn = found.of(rng.integers(0, found.costs.shape[1], size))
                ends.append(choosing.choose(drawn, risks, order, {}).place)
            promised = [place for place in ends if place is not None]
            broken = sum(bool(losses[place] > limit) for place in promised)
            spent = [dearest if place is None else costs[place] for place in ends]
            among = f"{1 - broken / len(promised):.3f}" if promised else "-"
            yield (
                f"{name} loss<={limit}@.95, {size} questions: kept "
                f"{1 - broken / CALIBRATIONS:.3f}, promised "
                f"{len(promised) / CALIBRATIONS:.3f}, kept of those {among}; "
                f"cost {np.mean(spent):.4g}, oracle {oracle:.4g}, always {dearest:.4g}"
            )


def streams(name: str, found: RisksByThreshold) -> Iterator[str]:
    """Wrong verdicts at any of many looks, where the loss is nearest to the limit."""
    losses = found.values["loss"].mean(axis=1)
    for limit in LIMITS:
        for side, places in (("above", losses > limit), ("below", losses <= limit)):
            if not places.any():
                continue
            near = np.flatnonzero(places)[np.argmin(np.abs(losses[places] - limit))]
            values = found.values["loss"][near]
            rng = np.random.default_rng(1)
            ended = [
                verdict(values[rng.integers(0, len(values), LOOKS * EVERY)], limit)
                for _ in range(STREAMS)
            ]
            shares = {each: ended.count(each) / STREAMS for each in ("kept", "broken")}
            yield (
                f"{name} loss {losses[near]:+.4f}, {side} the limit {limit}, at the first "
                f"of {LOOKS} looks that tells: kept {shares['kept']:.3f}, "
                f"broken {shares['broken']:.3f}"
            )


def verdict(stream: Floats, limit: float) -> str:
    """At the first look that tells."""
    for look in range(1, LOOKS + 1):
        so_far = stream[: look * EVERY]
        if betting.wealth(so_far, limit) >= 20:
            return "kept"
        if betting.wealth(-so_far, -limit) >= 20:
            return "broken"
    return "not yet known"


def router_shifts(rows: Outcomes) -> Iterator[str]:
    many = [i for i, row in enumerate(rows.rows) if row.set in MANY_HOPS]
    one = [i for i, row in enumerate(rows.rows) if row.set not in MANY_HOPS]
    rng = np.random.default_rng(2)
    for name, own, other in (("many hops", many, one), ("one hop", one, many)):
        shuffled = rng.permutation(own).tolist()
        cut = len(own) * 3 // 4
        file = routers.learn(rows.of(shuffled[:cut]), [Risk.parse("loss<=.05")])
        for where, places in (("same sets", shuffled[cut:]), ("other sets", other)):
            label = f"router learned from {name}, on {where}"
            try:
                whole = checking.check_outcomes(file, rows.of(places))
            except UsageError as error:
                yield f"{label}: {error}"
                continue
            few = [
                checking.check_outcomes(file, rows.of(rng.permutation(places)[:FRESH]))
                for _ in range(DRAWS)
            ]
            yield told(label, whole, few)


def path_shifts(paths: Sequence[Walk]) -> Iterator[str]:
    """From questions with few hops to those with more, by their nesting."""
    nesting = np.array([path.known[0]["nesting"] for path in paths])
    middle = np.median(nesting)
    few = np.flatnonzero(nesting <= middle)
    many = np.flatnonzero(nesting > middle)
    rng = np.random.default_rng(3)
    for name, own, other in (("few hops", few, many), ("more hops", many, few)):
        shuffled = rng.permutation(own).tolist()
        cut = len(own) * 3 // 4
        file = guarantee.learn(
            [paths[i] for i in shuffled[:cut]],
            [Risk.parse("loss<=.1")],
            workflow="ircot",
            reader="",
            utility="correctness",
        )
        for where, places in (("the same", shuffled[cut:]), ("the others", other.tolist())):
            label = f"value learned from {len(own)} of {name}, on {where}"
            try:
                whole = checking.check_paths(file, [paths[i] for i in places])
            except UsageError as error:
                yield f"{label}: {error}"
                continue
            yield told(label, whole, [whole])


def reader_shifts(paths: Sequence[Walk], others: Mapping[str, Walks]) -> Iterator[str]:
    """From all paths to other questions, by the same reader and by another."""
    rng = np.random.default_rng(4)
    for limit in SHIFT_LIMITS:
        file = guarantee.learn(
            paths,
            [Risk.parse(limit)],
            workflow="ircot",
            reader="",
            utility="correctness",
        )
        for where, walks in others.items():
            label = f"value of {limit} learned from {len(paths)}, on {where}"
            fresh = [each.path for each in walks.paths]
            try:
                whole = checking.check_paths(file, fresh)
            except UsageError as error:
                yield f"{label}: {error}"
                continue
            few = [
                checking.check_paths(file, [fresh[i] for i in rng.permutation(len(fresh))[:FEW]])
                for _ in range(DRAWS)
            ]
            yield told(label, whole, few)


def told(label: str, whole: Check, few: Sequence[Check]) -> str:
    verdicts = [each.verdict for each in few]
    shares = ", ".join(f"{v} {verdicts.count(v)}" for v in ("kept", "broken", "not yet known"))
    [risk] = whole.risks
    moved = sum(bool(each.moved) for each in few)
    farthest = ", ".join(each.signal for each in whole.moved[:3]) or "none"
    return (
        f"{label}: {whole.questions} questions: {whole.verdict}, {risk.risk}: {risk.found:+.3f} "
        f"[{risk.low:+.3f}, {risk.high:+.3f}], {len(whole.moved)} of {whole.signals} signals moved "
        f"({farthest}); {len(few)} checks of {few[0].questions}: {shares}; drift told in {moved}"
    )


if __name__ == "__main__":
    main()
