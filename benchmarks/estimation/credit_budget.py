"""Credit within a budget of calls: its error and coverage beside exact Shapley credit.

Runs on Hopland with four retrievals that brought something, measured by the embedded reader with
equal weights (counted agreement, as for models without log-probabilities). The exact credit comes
from all 16 coalitions, whose beliefs are enumerated. For each budget, over runs and seeds: replies
per run, the mean absolute error of a share, and the share of intervals that cover the exact one.

    OMP_NUM_THREADS=1 python benchmarks/estimation/credit_budget.py [--runs 40] [--seeds 5] [--json]
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from hopscope import workflows
from hopscope.api import given
from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.runtime import components
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Reader
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.types import Run
from hopscope.tracing import appraisal
from hopscope.tracing.games.frozen import over_steps

PLAYERS, SAMPLES = 4, 10
EXACT = 2**PLAYERS * SAMPLES
BUDGETS = (EXACT // 8, EXACT // 4, EXACT // 2, EXACT)


class Share(NamedTuple):
    """A step's Shapley share, and the exact one."""

    value: float
    low: float
    high: float
    exact: float


class Row(NamedTuple):
    """The results within one budget."""

    calls: int
    drawn: float
    """Replies per run."""
    error: float
    """Mean absolute error of a share."""
    covered: float
    width: float
    """Mean width of an interval."""
    n: int
    """Shares."""


def runs(reader: Reader, count: int) -> list[Run]:
    """Runs with four players; a chain of so many hops needs as many retrievals."""
    deps = Deps(reader=reader, retriever=bm25.from_passages(hopland.corpus(), name="hopland"))
    workflow = Workflow("ircot", components.load(workflows, "ircot").build(k=2), {"k": 2})
    found: list[Run] = []
    for each in hopland.questions("dev"):
        if each.hops != 3 or len(found) == count:
            continue
        result = run(workflow, each.question, deps)
        if len(over_steps(result).players) == PLAYERS:
            found.append(result)
    return found


def shares(appraiser: Appraiser, each: Run, calls: int | None) -> tuple[list[Share], int]:
    """The shares of a run within a budget, without exact ones, and the replies drawn."""
    appraised = appraisal.share(
        each, appraiser.meters, appraiser.rules, appraiser.provenance(), calls=calls
    )
    players = over_steps(each).players
    credits = [c for c in appraised.credits if c.rule == "shapley" and c.step in players]
    found = []
    for credit in credits:
        measured = credit.measurement
        if measured.value is None or measured.low is None or measured.high is None:
            return [], 0
        found.append(Share(measured.value, measured.low, measured.high, 0.0))
    [game] = appraised.games
    of_content = {value.evidence: value.measurement.n for value in game.values}
    return found, sum(of_content.values())


def measured(reader: Reader, chosen: Sequence[Run], seeds: int) -> Iterator[Row]:
    judge = given.entailment("lexical")

    def appraiser(seed: int, **options: str) -> Appraiser:
        own = {f"seper.{key}": text for key, text in options.items()}
        rules = ("leave_one_out", "shapley")
        measuring = Measuring(SAMPLES, seed, own, meters=("seper",), rules=rules)
        return Appraiser(reader, judge, measuring)

    precise = appraiser(0, method="enumerate", bound="0.01", budget="1000")
    # A run is left out where the enumeration does not reach half of the probability.
    known = [(each, truth) for each in chosen if (truth := shares(precise, each, None)[0])]
    print(f"{len(known)} of {len(chosen)} runs have exact credit", file=sys.stderr)
    for calls in BUDGETS:
        found: list[Share] = []
        drawn: list[int] = []
        for seed in range(seeds):
            drawing = appraiser(seed, weight="uniform")
            for each, truth in known:
                own, replies = shares(drawing, each, calls)
                drawn.append(replies)
                found += [s._replace(exact=t.value) for s, t in zip(own, truth, strict=True)]
        yield Row(
            calls,
            fmean(drawn),
            fmean(abs(share.value - share.exact) for share in found),
            fmean(share.low <= share.exact <= share.high for share in found),
            fmean(share.high - share.low for share in found),
            len(found),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    reader = given.reader("tiny")
    chosen = runs(reader, options.runs)
    rows = list(measured(reader, chosen, options.seeds))
    if options.json:
        json.dump([row._asdict() for row in rows], sys.stdout, indent=1)
        return
    print(f"{len(chosen)} runs of {PLAYERS} retrievals, {options.seeds} seeds\n")
    print("| calls | drawn | error | covered | width | shares |\n|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        print(
            f"| {row.calls} | {row.drawn:.1f} | {row.error:.4f} | {row.covered:.3f} "
            f"| {row.width:.3f} | {row.n} |"
        )


if __name__ == "__main__":
    main()
