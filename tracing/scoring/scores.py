"""The answers of runs by several metrics, run by run and on average.

The shape is a public contract: scripts read it.
"""

from collections.abc import Mapping, Sequence

from hopscope.runtime.types import Measurement, Record, Run, RunStatus
from hopscope.tracing.scoring.metric import AnswerMetric, case_of
from hopscope.tracing.statistics.averages import MeanScore, average


class RunScores(Record):
    id: str
    question: str
    workflow: str
    status: RunStatus
    answer: str | None
    scores: dict[str, Measurement]
    """By the metric's name as given."""


class Scores(Record):
    runs: tuple[RunScores, ...]
    averages: dict[str, MeanScore]
    """Over all measured runs, by metric."""


def score(runs: Sequence[Run], metrics: Mapping[str, AnswerMetric], *, seed: int = 0) -> Scores:
    """Every run by every metric; each metric scores all runs in one call.

    Args:
        seed: seed of the bootstrap of the averages.

    Raises:
        ReaderError, EntailmentError: a model failed.
    """
    cases = [case_of(run) for run in runs]
    by_metric = {name: metric.score(cases) for name, metric in metrics.items()}
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
    )
