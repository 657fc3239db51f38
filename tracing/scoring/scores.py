"""The answers of runs by several metrics, run by run and on average.

The shape is a public contract: scripts read it.
"""

from collections.abc import Mapping, Sequence
from time import perf_counter

from pydantic import Field

from hopscope.runtime.budget.prices import Prices
from hopscope.runtime.types import Measurement, Record, Run, RunStatus, Usage
from hopscope.tracing.scoring.metric import AnswerMetric, case_of
from hopscope.tracing.statistics.averages import MeanScore, average
from hopscope.tracing.wrappers.metered import MeteredReader

NO_READERS: Mapping[str, MeteredReader] = {}
NO_PRICES = Prices()


class RunScores(Record):
    id: str
    question: str
    workflow: str
    status: RunStatus
    answer: str | None
    scores: dict[str, Measurement]
    """By the metric's name as given."""


class JudgeCost(Record):
    """What a metric that asks a reader took over all answers."""

    answers: int
    usage: Usage
    seconds: float
    """Of the clock; prompts that a reader answers at the same time share it."""
    cost: float | None
    """None if a price or the tokens are unknown."""
    currency: str


class Scores(Record):
    runs: tuple[RunScores, ...]
    averages: dict[str, MeanScore]
    """Over all measured runs, by metric."""
    costs: dict[str, JudgeCost] = Field(default_factory=dict)
    """Of metrics that ask a reader, by metric."""


def score(
    runs: Sequence[Run],
    metrics: Mapping[str, AnswerMetric],
    *,
    seed: int = 0,
    readers: Mapping[str, MeteredReader] = NO_READERS,
    prices: Prices = NO_PRICES,
) -> Scores:
    """Every run by every metric; each metric scores all runs in one call.

    Args:
        seed: seed of the bootstrap of the averages.
        readers: the readers that metrics ask, by metric.
        prices: of those readers.

    Raises:
        ReaderError, EntailmentError: a model failed.
    """
    cases = [case_of(run) for run in runs]
    by_metric: dict[str, list[Measurement]] = {}
    costs: dict[str, JudgeCost] = {}
    for name, metric in metrics.items():
        begun = perf_counter()
        by_metric[name] = metric.score(cases)
        if asked := readers.get(name):
            spent, price = asked.take(), prices.of(asked.name)
            costs[name] = JudgeCost(
                answers=len(cases),
                usage=spent,
                seconds=perf_counter() - begun,
                cost=price.of(spent),
                currency=price.currency,
            )
    return Scores(
        runs=tuple(
            RunScores(
                id=run.id,
                question=run.question.text,
                workflow=run.workflow,
                status=run.status,
                answer=run.answer,
                scores={name: scores[position] for name, scores in by_metric.items()},
            )
            for position, run in enumerate(runs)
        ),
        averages={
            name: average(scores, binary=metrics[name].binary, seed=seed)
            for name, scores in by_metric.items()
        },
        costs=costs,
    )
