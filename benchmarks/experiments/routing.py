"""A router between six sets: by cross-validation at given costs, and learned on the other five.

    python benchmarks/experiments/routing.py [--data FOLDER] [--transfer] [--resamples N]

Measured on what Llama-3.1-8B-Instruct answered to 3,000 questions without retrieval, with one, and
by IRCoT (llama8b_routes_dev.jsonl of the research data; AdaRAGUE, arXiv 2501.12835).
"""

from argparse import ArgumentParser
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from research_data import add_option, missing

from hopscope.api.views import render
from hopscope.lab.budget import frontier
from hopscope.lab.budget.outcomes import Outcomes, read
from hopscope.lab.budget.routing.fitting import Fitting, asked, learn
from hopscope.lab.budget.routing.judging import RouteFrontier, compare, grid, judge, summary

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
FEW = 50
DRAWS = 2
WHOLE = Fitting(levels=("reasoning",))
QUICK = Fitting(levels=("reasoning",), trees=40, folds=2)
"""For `--transfer`, which takes no price from the folds."""


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    add_option(parser)
    parser.add_argument("--transfer", action="store_true", help="learn on five sets, test on one")
    parser.add_argument("--resamples", type=int, default=1000)
    options = parser.parse_args()
    if reason := missing(options.data, [FILE]):
        raise SystemExit(reason)
    outcomes = read([Path(options.data) / FILE])
    utilities = crossed(outcomes, QUICK if options.transfer else WHOLE)
    if options.transfer:
        transfer(outcomes, utilities)
    else:
        shipped = [0.0] * len(outcomes.rows)
        made = compare(
            outcomes,
            utilities,
            outcomes.costs,
            shipped=shipped,
            at=COSTS,
            resamples=options.resamples,
        )
        render.out().print("\n".join(summary(made)))
        render.out().print(grid(made))
        for point in made.pooled.router[::4]:
            print(f"one price for all: {told(point)}")


def told(point: object) -> str:
    fields = ("accuracy", "cost", "fixed", "difference", "difference_low", "difference_high")
    return ", ".join(f"{name} {getattr(point, name):.4f}" for name in fields)


def crossed(outcomes: Outcomes, fitting: Fitting) -> Floats:
    """Utilities predicted by a router that learned from the other folds."""
    found = np.zeros(outcomes.scores.shape)
    fold = np.random.default_rng(0).permutation(len(outcomes.rows)) % FOLDS
    for held in range(FOLDS):
        file = learn(outcomes.of(np.flatnonzero(fold != held).tolist()), fitting=fitting).file
        places = np.flatnonzero(fold == held).tolist()
        found[places], _ = file.predict([asked(outcomes.rows[place]) for place in places])
    return found


def transfer(outcomes: Outcomes, inside: Floats) -> None:
    """Mean accuracy over all mean costs above the fixed arms' mixture, by what was learned from."""
    names = np.array([row.set for row in outcomes.rows])
    print("set  five others  and 50 rows  all six (cross-validation)", flush=True)
    rows: list[tuple[float, float, float]] = []
    for name in outcomes.sets:
        others = outcomes.of(np.flatnonzero(names != name).tolist())
        here = np.flatnonzero(names == name)
        plain = learn(others, fitting=QUICK).file
        found: list[tuple[float, float, float]] = []
        for draw in range(DRAWS):
            dealt = np.random.default_rng(draw).permutation(here)
            few, rest = outcomes.of(dealt[:FEW].tolist()), np.sort(dealt[FEW:]).tolist()
            test = outcomes.of(rest)
            adapted = learn(others, adapt=few, fitting=QUICK).file
            zero, some = (above(judge(test, file, resamples=100)) for file in (plain, adapted))
            shipped = [0.0] * len(rest)
            full = compare(test, inside[rest], test.costs, shipped=shipped, resamples=100)
            found.append((zero, some, above(full)))
        means = tuple(float(each) for each in np.mean(found, axis=0))
        rows.append((means[0], means[1], means[2]))
        print(name, "  ".join(f"{each:+.4f}" for each in means), flush=True)
    zero, some, full = np.mean(rows, axis=0)
    print(
        f"mean {zero:+.4f}  {some:+.4f}  {full:+.4f}; regained {(some - zero) / (full - zero):.2f}"
    )


def above(made: RouteFrontier) -> float:
    """Mean difference to the fixed arms, over the costs up to those of the dearest arm."""
    group = made.pooled
    costs = [point.cost for point in group.router]
    scores = [point.accuracy for point in group.router]
    hull = frontier.upper_hull([(arm.cost, arm.accuracy) for arm in group.arms])
    tried = np.linspace(0.0, max(arm.cost for arm in group.arms), 41)
    fixed = [frontier.at(hull, cost) for cost in tried]
    return float(np.mean(np.interp(tried, costs, scores) - fixed))


if __name__ == "__main__":
    main()
