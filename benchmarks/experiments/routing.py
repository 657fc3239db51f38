"""A router between six sets: by cross-validation at given costs, by the number of questions that it
learns from, and learned on the other five.

    python benchmarks/experiments/routing.py [--data FOLDER] [--resamples N]
                                             [--repeats N] [--curve]
                                             [--transfer [--few 50 --few 100 --few 200]]

Measured on what Llama-3.1-8B-Instruct answered to 3,000 questions without retrieval, with one, and
by IRCoT (llama8b_routes_dev.jsonl of the research data; AdaRAGUE, arXiv 2501.12835).
"""

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from research_data import add_option, missing

from hopscope.api.views import render
from hopscope.lab.budget import frontier
from hopscope.lab.budget.outcomes import Outcomes, read
from hopscope.lab.budget.routing.fitting import Fitting, asked, learn, price_grid
from hopscope.lab.budget.routing.judging import PRICES, RouteFrontier, compare, grid, summary
from hopscope.tracing.learned.route_file import choose
from hopscope.tracing.statistics.intervals import quantiles

Floats = NDArray[np.float64]
FILE = "llama8b_routes_dev.jsonl"
COSTS = {
    "hotpotqa": 2.58,
    "2wikimultihopqa": 2.84,
    "musique": 3.71,
    "nq": 0.99,
    "squad": 0.97,
    "trivia": 0.54,
}
"""Mean steps of Adaptive-RAG's classifier on other questions of the sets."""
FOLDS = 5
FEW = (50, 100, 200)
DRAWS = 4
SIZES = (300, 600, 1200, 2400)
"""Questions to learn from, of all sets together, for `--curve`."""
WHOLE = Fitting(levels=("reasoning",))
QUICK = Fitting(levels=("reasoning",), trees=40, folds=2)
"""For `--transfer` and `--curve`, which take no price from the folds."""


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    add_option(parser)
    parser.add_argument("--repeats", type=int, default=1, help="other folds each time; means")
    parser.add_argument("--curve", action="store_true", help="learn from fewer questions, too")
    parser.add_argument("--transfer", action="store_true", help="learn on five sets, test on one")
    parser.add_argument(
        "--few", type=int, action="append", help="questions of the set to adapt to, repeatable"
    )
    parser.add_argument("--resamples", type=int, default=1000)
    options = parser.parse_args()
    if reason := missing(options.data, [FILE]):
        raise SystemExit(reason)
    outcomes = read([Path(options.data) / FILE])
    if options.curve:
        curve(outcomes, options.resamples)
        return
    if options.transfer:
        utilities = crossed(outcomes, QUICK)
        transfer(outcomes, utilities, options.few or FEW, options.resamples)
        return
    made = [judged(outcomes, options.resamples, seed) for seed in range(options.repeats)]
    render.out().print("\n".join(summary(made[0])))
    render.out().print(grid(made[0]))
    for point in made[0].pooled.router[::4]:
        print(f"one price for all: {told(point)}")
    if options.repeats > 1:
        print(f"means of {options.repeats} repeats, of the intervals' ends, too:")
        for groups in zip(*(each.sets for each in made), strict=True):
            print(f"  {groups[0].set}: {mean_of([each.at[0] for each in groups])}")
        inner = [each.pooled.within_sets for each in made]
        print(f"  all, these costs in each set: {mean_of(inner)}")


def judged(outcomes: Outcomes, resamples: int, seed: int) -> RouteFrontier:
    utilities = crossed(outcomes, WHOLE, seed=seed)
    shipped = [0.0] * len(outcomes.rows)
    return compare(
        outcomes, utilities, outcomes.costs, shipped=shipped, at=COSTS, resamples=resamples
    )


def mean_of(points: Sequence[object]) -> str:
    fields = ("accuracy", "low", "high", "difference", "difference_low", "difference_high")
    means = {name: np.mean([getattr(point, name) for point in points]) for name in fields}
    return (
        f"{means['accuracy']:.3f} [{means['low']:.3f}, {means['high']:.3f}], above fixed "
        f"{means['difference']:+.3f} [{means['difference_low']:+.3f}, "
        f"{means['difference_high']:+.3f}]"
    )


def told(point: object) -> str:
    fields = ("accuracy", "cost", "fixed", "difference", "difference_low", "difference_high")
    return ", ".join(f"{name} {getattr(point, name):.4f}" for name in fields)


def curve(outcomes: Outcomes, resamples: int) -> None:
    """Mean accuracy over all mean costs above the fixed arms' mixture, with one price for all."""
    count = len(outcomes.rows)
    drawn = np.random.default_rng(0).multinomial(count, [1 / count] * count, resamples)
    weights = np.vstack([np.ones((1, count)), drawn])
    for size in SIZES:
        utilities = crossed(outcomes, QUICK, size)
        gained = above(outcomes, utilities, outcomes.costs, weights)
        print(f"learned from {size}: {spelled(gained)}", flush=True)


def crossed(
    outcomes: Outcomes, fitting: Fitting, size: int | None = None, *, seed: int = 0
) -> Floats:
    """Utilities predicted by a router that learned from the other folds.

    Args:
        size: from so many of their questions; by default from all.
    """
    found = np.zeros(outcomes.scores.shape)
    rng = np.random.default_rng(seed)
    fold = rng.permutation(len(outcomes.rows)) % FOLDS
    for held in range(FOLDS):
        others = np.flatnonzero(fold != held)
        if size is not None:
            others = np.sort(rng.permutation(others)[:size])
        file = learn(outcomes.of(others.tolist()), fitting=fitting).file
        places = np.flatnonzero(fold == held).tolist()
        found[places], _ = file.predict([asked(outcomes.rows[place]) for place in places])
    return found


def transfer(outcomes: Outcomes, inside: Floats, few: Sequence[int], resamples: int) -> None:
    """Mean accuracy over all mean costs above the fixed arms' mixture, by what was learned from.

    The questions tried on are the same for all: those beyond the largest of `few`.
    """
    names = np.array([row.set for row in outcomes.rows])
    columns = ["five others", *(f"and {count}" for count in few), "all six"]
    print("set", *columns, sep="  ", flush=True)
    rows: list[list[Floats]] = []
    for name in outcomes.sets:
        others = outcomes.of(np.flatnonzero(names != name).tolist())
        here = np.flatnonzero(names == name)
        drawn = np.random.default_rng(0).multinomial(
            len(here), [1 / len(here)] * len(here), resamples
        )
        weights = np.vstack([np.ones((1, len(here))), drawn])
        plain = learn(others, fitting=QUICK).file
        found: list[list[Floats]] = []
        for draw in range(DRAWS):
            dealt = np.random.default_rng(draw).permutation(len(here))
            rest = np.sort(dealt[max(few) :])
            test = outcomes.of(here[rest].tolist())
            files = [plain]
            for count in few:
                adapt = outcomes.of(here[dealt[:count]].tolist())
                files.append(learn(others, adapt=adapt, fitting=QUICK).file)
            questions = [asked(row) for row in test.rows]
            predicted = [file.predict(questions) for file in files]
            predicted.append((inside[here[rest]], test.costs))
            found.append([above(test, *each, weights[:, rest]) for each in predicted])
        means = [np.mean(each, axis=0) for each in zip(*found, strict=True)]
        rows.append(means)
        print(name, *(spelled(each) for each in means), sep="  ", flush=True)
    zero, *some, full = (np.mean(each, axis=0) for each in zip(*rows, strict=True))
    print("mean", *(spelled(each) for each in (zero, *some, full)), sep="  ")
    print("less five others", *(spelled(each - zero) for each in (*some, full)), sep="  ")
    shares = ((each - zero)[0] / (full - zero)[0] for each in some)
    print("regained of the difference", *(f"{each:.2f}" for each in shares), sep="  ")


def above(test: Outcomes, utilities: Floats, costs: Floats, weights: Floats) -> Floats:
    """Mean difference to the fixed arms, over the costs up to those of the dearest arm, by
    resample.

    Args:
        weights: (resample, question)
    """
    prices = price_grid(test, PRICES)
    arms = np.array([choose(utilities, costs, np.full(len(costs), each)) for each in prices])
    rows = np.arange(len(costs))
    weights = weights / weights.sum(axis=1, keepdims=True)
    scores, paid = weights @ test.scores[rows, arms].T, weights @ test.costs[rows, arms].T
    fixed = zip(weights @ test.costs, weights @ test.scores, strict=True)
    found = []
    for cost, score, (arm_costs, arm_scores) in zip(paid, scores, fixed, strict=True):
        order = np.argsort(cost, kind="stable")
        hull = frontier.upper_hull(list(zip(arm_costs.tolist(), arm_scores.tolist(), strict=True)))
        tried = np.linspace(0.0, arm_costs.max(), 41)
        mixed = np.interp(tried, [c for c, _ in hull], [u for _, u in hull])
        found.append(np.mean(np.interp(tried, cost[order], score[order]) - mixed))
    return np.array(found)


def spelled(values: Floats) -> str:
    """The first with the interval of the others."""
    low, high = quantiles(values[1:])
    return f"{values[0]:+.4f} [{low:+.4f}, {high:+.4f}]"


if __name__ == "__main__":
    main()
