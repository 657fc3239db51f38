"""eRAG over many runs: rankings, means over questions, and their correlation with the answers.

The fields are a public contract, because scripts read them.
"""

from collections.abc import Sequence

from hopscope.runtime.errors import EntailmentError, ReaderError
from hopscope.runtime.types import Measurement, Record, Run
from hopscope.tracing.erag.labels import ERAG, Ranking
from hopscope.tracing.scoring.metric import case_of
from hopscope.tracing.statistics.averages import MeanScore, average
from hopscope.tracing.statistics.correlation import rank_correlation


class RunRankings(Record):
    id: str
    question: str
    workflow: str
    answer: str | None
    end_to_end: Measurement
    """The final answer's score by the metric that labels passages."""
    rankings: tuple[Ranking, ...]
    """One for each step that retrieved, then the run's own."""
    error: str | None = None
    """The model's error if one failed, so that nothing could be measured."""


class RankAgreement(Record):
    """Correlation of a measure of the run's ranking with its answer's score, over questions."""

    kendall: Measurement
    spearman: Measurement


class ERAGReport(Record):
    estimator: str
    averages: dict[str, MeanScore]
    """By measure, over the runs' own rankings; those of AP and RR are MAP and MRR."""
    agreement: dict[str, RankAgreement]
    """By measure, over runs with both values."""
    runs: tuple[RunRankings, ...]


def erag_report(runs: Sequence[Run], erag: ERAG, *, seed: int = 0) -> ERAGReport:
    """Measure eRAG over the runs. If a model fails on a run, that run alone is unmeasured.

    Args:
        seed: of the bootstrap.

    Raises:
        ReaderError, EntailmentError: a model failed on the runs' own answers.
    """
    scored = erag.metric.score([case_of(run) for run in runs])
    rows = tuple(_row(run, score, erag) for run, score in zip(runs, scored, strict=True))
    names = list(rows[0].rankings[-1].measures) if rows else []
    found = {name: [row.rankings[-1].measures[name] for row in rows] for name in names}
    return ERAGReport(
        estimator=erag.estimator,
        averages={
            name: average(values, binary=erag.metric.binary and _is_share(name), seed=seed)
            for name, values in found.items()
        },
        agreement={name: _agreement(values, scored, seed) for name, values in found.items()},
        runs=rows,
    )


def _row(run: Run, score: Measurement, erag: ERAG) -> RunRankings:
    error = None
    try:
        rankings = erag.appraise(run)
    except (ReaderError, EntailmentError) as failure:
        error = str(failure)
        rankings = [erag.unmeasured(error)]
    return RunRankings(
        id=run.id,
        question=run.question.text,
        workflow=run.workflow,
        answer=run.answer,
        end_to_end=score,
        rankings=tuple(rankings),
        error=error,
    )


def _is_share(name: str) -> bool:
    """Whether the measure is always 0 or 1 for binary labels."""
    return name == "R" or name.partition("@")[0] == "Hit"


def _agreement(
    measures: Sequence[Measurement], scores: Sequence[Measurement], seed: int
) -> RankAgreement:
    pairs = [
        (measure.value, score.value)
        for measure, score in zip(measures, scores, strict=True)
        if measure.value is not None and score.value is not None
    ]
    one, other = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return RankAgreement(
        kendall=rank_correlation("kendall", one, other, seed=seed),
        spearman=rank_correlation("spearman", one, other, seed=seed),
    )
