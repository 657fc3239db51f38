"""EoR's errors and eRAG's correlations of real answers, by rankings of real passages.

    export PYTHONPATH=benchmarks
    python benchmarks/experiments/real_rankings.py [--data FOLDER]

The answers are Llama's of `llama_answers`, the rankings BM25's over the passages of all records of
a set: no model runs. Llama saw other passages, those of its own search in all of Wikipedia, so the
rankings tell how easy the evidence of a question is to find. The route `none` is the control: no
passage can have changed its answers. Tables are Markdown.
"""

import argparse
from collections.abc import Mapping, Sequence

import numpy as np
from experiments.llama_answers import (
    ANSWERS,
    LISTED,
    PASSAGES,
    ROUTES,
    Answered,
    Row,
    Searched,
    read,
    searched,
)
from numpy.typing import NDArray
from research_data import add_option, missing
from scipy.stats import kendalltau

from hopscope.lab.suites.figures import table
from hopscope.lab.table_forms import terminal
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.texts.answers import contains
from hopscope.runtime.types import Measurement, Passage
from hopscope.tracing.erag import ranking
from hopscope.tracing.error_decomposition.errors import brief, of_answer, profile
from hopscope.tracing.statistics.correlation import rank_correlation
from hopscope.tracing.statistics.intervals import of_resamples

Floats = NDArray[np.float64]
SHOWN = 5
"""Passages of the document of EoR's decomposition."""
RESAMPLES = 1000
CLOSED = ("yes", "no")
MEASURES = tuple(name for name in ranking.BINARY if name != "R")
"""Recall within the list is Hit."""


def open_questions(answered: Answered) -> list[int]:
    """The places of the questions whose answer is neither yes nor no."""
    return [
        place
        for place, row in enumerate(answered.rows)
        if not any(answer.strip().lower() in CLOSED for answer in row["answers"])
    ]


def decomposition(sets: Mapping[str, tuple[Answered, Searched]]) -> Table:
    """EoR's errors of the answers, against the first hits of a search of ours."""
    shares = ("failure", "retriever", "extraction", "hallucination", "lucky_guess", "residual")
    rows: list[dict[str, Cell]] = []
    for name, (answered, passages) in sets.items():
        for route in ROUTES:
            right = answered.right(route)
            made = [
                of_answer(
                    passages.found[place][:SHOWN],
                    answered.rows[place]["answers"],
                    answer,
                    correct=right[place],
                )
                for place in open_questions(answered)
                if brief(answer := answered.rows[place]["predictions"][route])
            ]
            found = profile(made)
            rows.append({"set": name, "route": route, **{key: found[key] for key in shares}})
    return table(
        "errors",
        "EoR's errors of the answers",
        {"set": "set", "route": "route", **{key: key.replace("_", " ") for key in shares}},
        rows,
        f"the document is BM25's first {SHOWN} passages for the question out of the passages of "
        "all records; Llama read others, of its own search",
        "questions answered by yes or no are left out, and answers of more than five words",
        "95 % intervals: clopper-pearson",
    )


def correlations(sets: Mapping[str, tuple[Answered, Searched]]) -> Table:
    """eRAG's Table 1: measures of a ranking against the answers of each route."""
    rows: list[dict[str, Cell]] = []
    for name, (answered, passages) in sets.items():
        kept = open_questions(answered)
        right = {route: np.array(answered.right(route), float)[kept] for route in ROUTES}
        for kind, label in (("gold", is_gold), ("holds the answer", holds)):
            values = [
                measures(
                    [label(answered.rows[p], passages.gold[p], hit) for hit in passages.found[p]]
                )
                for p in kept
            ]
            for measure in MEASURES:
                numbers = [each[measure] or 0.0 for each in values]
                found = {route: tau(numbers, right[route]) for route in ROUTES}
                rows.append(
                    {
                        "set": name,
                        "labels": kind,
                        "measure": measure,
                        **found,
                        "apart": tau_apart(numbers, right["one"], right["none"])
                        if all(found[route].low is not None for route in ("one", "none"))
                        else None,
                    }
                )
    return table(
        "correlations",
        "Kendall's tau-b of a ranking's measures with right answers",
        {
            "set": "set",
            "labels": "label",
            "measure": "measure",
            **{route: f"tau, {route}" for route in ROUTES},
            "apart": "one less none",
        },
        rows,
        f"labels of BM25's first {LISTED} passages; {counted(sets)} with no answer of yes or no",
        f"95 % intervals: percentile bootstrap over questions, resamples={RESAMPLES}, seed=0",
    )


def counted(sets: Mapping[str, tuple[Answered, Searched]]) -> str:
    return " and ".join(f"{len(open_questions(a))} questions of {n}" for n, (a, _) in sets.items())


def measures(labels: Sequence[bool]) -> dict[str, float | None]:
    """Those of a ranking; an empty one is as bad as one without a relevant passage."""
    return ranking.measures([float(label) for label in labels] or [0.0], binary=True)


def is_gold(row: Row, gold: frozenset[str], passage: Passage) -> bool:
    return passage.key in gold


def holds(row: Row, gold: frozenset[str], passage: Passage) -> bool:
    return any(contains(f"{passage.title} {passage.text}", answer) for answer in row["answers"])


def tau(values: Sequence[float], right: Floats) -> Measurement:
    return rank_correlation("kendall", values, right.tolist())


def tau_apart(values: Sequence[float], one: Floats, other: Floats) -> Measurement:
    """The first correlation less the second, over the same resamples of questions."""
    x = np.array(values)
    rng = np.random.default_rng(0)
    drawn = [rng.integers(0, len(x), len(x)) for _ in range(RESAMPLES)]

    def apart(places: NDArray[np.intp]) -> float:
        first, second = (
            float(kendalltau(x[places], right[places]).statistic) for right in (one, other)
        )
        return first - second

    low, high = of_resamples([apart(places) for places in drawn]) or (None, None)
    return Measurement(value=apart(np.arange(len(x))), n=len(x), low=low, high=high, seed=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_option(parser)
    folder = parser.parse_args().data
    if reason := missing(folder, [ANSWERS, *PASSAGES.values()]):
        raise SystemExit(reason)
    answered = read(folder)
    sets = {
        name: (answered[name], searched(folder / file, answered[name]))
        for name, file in PASSAGES.items()
    }
    terminal.show([decomposition(sets), correlations(sets)], "markdown")


if __name__ == "__main__":
    main()
