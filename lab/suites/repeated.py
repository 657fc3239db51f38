"""The dependence of SePer's validity on the number of samples and on the draw.

One-hop questions with gold, distractor and random passage, measured five times over with other
seeds. The smaller numbers of samples are the first of the larger, as the reader's samples have
streams of their own.

Source: Dai et al. 2025 (arXiv 2503.01478), Figure 3 and Table 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from hopscope.lab.suites import entailment_models
from hopscope.lab.suites.figures import table
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.resampling import Pairs
from hopscope.lab.suites.rivals import Contexts
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.ports import Reader
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Measurement,
    Question,
    Scored,
    ScoreRequest,
)
from hopscope.tracing.beliefs.beliefs import Belief
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, Estimate, estimates

SIZES = (1, 5, 10, 15, 20)
REPETITIONS = 5
SHARE = 8
"""One question in this many: each context takes a hundred samples."""

QuestionContexts = tuple[Question, Contexts]
Grid = list[list[list[float | None]]]
"""Beliefs, (repetition, question, context); the first context is closed book, the second gold."""


@dataclass(frozen=True)
class First:
    """Draws the largest number of samples once and returns the first ones."""

    reader: Reader

    @property
    def name(self) -> str:
        return self.reader.name

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        """As the port says, of up to the largest size."""
        whole = [request.model_copy(update={"n": SIZES[-1]}) for request in requests]
        found = self.reader.generate(whole)
        return [drawn[: request.n] for request, drawn in zip(requests, found, strict=True)]

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        return self.reader.score(requests)


def table_of(inputs: SuiteInputs) -> Table:
    """A row for each number of samples."""
    items = inputs.questions(inputs.near(1), -(-inputs.limit // SHARE))
    contexts = [inputs.single_passages(item) for item in items]
    truth = [item.holds(s) for item, shown in zip(items, contexts, strict=True) for s in shown[1:]]
    question = [number for number, shown in enumerate(contexts) for _ in shown[1:]]
    pairs = Pairs(truth, question, inputs.seed)
    asked = [(item.question, shown) for item, shown in zip(items, contexts, strict=True)]
    bootstrap = Bootstrap(seed=inputs.seed)
    return table(
        "samples",
        "Samples and repetitions, single passage",
        {
            "samples": "",
            "soft": "mean r of ΔSePer-S",
            "soft_sd": "its sd",
            "hard": "mean r of ΔSePer-H",
            "hard_sd": "its sd",
            "sd": "sd of SePer-S with gold",
            "variation": "sd / mean",
        },
        [_row(inputs, size, asked, pairs, bootstrap) for size in SIZES],
        f"{REPETITIONS} repetitions over {counted(len(items), 'question')}; sd is over repetitions",
        *entailment_models.notes(inputs),
        f"95 % intervals: {pairs.method}; of the sd of SePer-S: {bootstrap.method}",
        digits=4,
    )


def _row(
    inputs: SuiteInputs,
    size: int,
    asked: Sequence[QuestionContexts],
    pairs: Pairs,
    bootstrap: Bootstrap,
) -> dict[str, Cell]:
    reader = First(inputs.reader)
    soft: Grid = []
    hard: Grid = []
    for repetition in range(REPETITIONS):
        meter = inputs.seper(reader=reader, samples=size, seed=inputs.seed + repetition)
        found = [meter.beliefs(*each) for each in asked]
        soft.append([[b.soft if isinstance(b, Belief) else None for b in row] for row in found])
        hard.append([[b.hard if isinstance(b, Belief) else None for b in row] for row in found])
    r_soft, sd_soft = _correlation(pairs, soft)
    r_hard, sd_hard = _correlation(pairs, hard)
    deviation, variation = _spread(soft, bootstrap)
    return {
        "samples": f"N={size}",
        "soft": r_soft,
        "soft_sd": sd_soft,
        "hard": r_hard,
        "hard_sd": sd_hard,
        "sd": deviation,
        "variation": variation,
    }


def _correlation(pairs: Pairs, grid: Grid) -> tuple[Measurement, Measurement]:
    """The mean over repetitions of r, and its standard deviation."""
    series = [
        [None if b is None or row[0] is None else b - row[0] for row in one for b in row[1:]]
        for one in grid
    ]
    found = [r.value for r in map(pairs.pearson, series) if r.value is not None]
    name = f"standard deviation over {len(found)} repetitions"
    if len(found) < 2:
        spread = Measurement(value=None, reason="fewer than two repetitions", estimator=name)
    else:
        spread = Measurement(value=stdev(found), n=len(found), estimator=name)
    return pairs.mean_pearson(series), spread


def _spread(grid: Grid, bootstrap: Bootstrap) -> list[Estimate]:
    """The mean over questions of the belief's standard deviation with gold over repetitions, and
    its ratio to the mean belief."""
    by_question = [
        [value for row in repeated if (value := row[1]) is not None]
        for repeated in zip(*grid, strict=True)
    ]
    deviation = np.array([stdev(v) if len(v) > 1 else 0.0 for v in by_question])
    mean = np.array([fmean(v) if v else 0.0 for v in by_question])
    measured = np.array([float(len(v) > 1) for v in by_question])
    asked = np.ones(len(by_question))
    return estimates(
        [
            Column(deviation, measured, measured, asked),
            Column(deviation, mean * measured, measured, asked),
        ],
        bootstrap,
    )
