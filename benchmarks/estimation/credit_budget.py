"""Credit within a budget of calls: its error and coverage beside exact Shapley credit.

Runs on Hopland with four retrievals that brought something, measured by the embedded reader with
equal weights (counted agreement, as for models without log-probabilities). The credit to compare
with comes from all 16 coalitions with 300 other replies each. For each budget, over runs and seeds:
replies per run, the mean absolute error of a share, and the share of intervals that cover that one.

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
REFERENCE = 300
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
        assert measured.value is not None
        assert measured.low is not None
        assert measured.high is not None
        found.append(Share(measured.value, measured.low, measured.high, 0.0))
    [game] = appraised.games
    of_content = {value.evidence: value.measurement.n for value in game.values}
    return found, sum(of_content.values())


def measured(reader: Reader, chosen: Sequence[Run], seeds: int) -> Iterator[Row]:
    judge = given.entailment("lexical")

    def appraiser(seed: int, samples: int = SAMPLES) -> Appraiser:
        rules, options = ("leave_one_out", "shapley"), {"seper.weight": "uniform"}
        measuring = Measuring(samples, seed, options, meters=("seper",), rules=rules)
        return Appraiser(reader, judge, measuring)

    precise = appraiser(seeds, REFERENCE)
    known = [(each, shares(precise, each, None)[0]) for each in chosen]
    for calls in BUDGETS:
        found: list[Share] = []
        drawn: list[int] = []
        for seed in range(seeds):
            drawing = appraiser(seed)
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
