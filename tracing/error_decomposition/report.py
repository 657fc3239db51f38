"""EoR's error decomposition of many runs: by run and step, as shares, and compared between systems.

Runs belong to systems by one of their fields, such as the workflow. Of several runs of a system on
one question the first counts.

The shape is a public contract: scripts read it.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from hopscope.runtime.types import Measurement, Record, Run
from hopscope.tracing.error_decomposition.errors import (
    MAX_WORDS,
    AnswerErrors,
    StepErrors,
    brief,
    of_run,
    profile,
)
from hopscope.tracing.error_decomposition.inconsistency import (
    ErrorKind,
    Inconsistency,
    Matrix,
    error_ratios,
    inconsistency,
)
from hopscope.tracing.scoring.metric import AnswerMetric, case_of

By = Literal["workflow", "retriever", "reader"]
Question = tuple[str, tuple[str, ...]]
"""Its text and golds."""


class RunErrors(Record):
    id: str
    system: str
    question: str
    answer: str | None
    verdict: Measurement
    """The answer's score; it is right from the report's `threshold` on."""
    errors: tuple[StepErrors, ...]
    """The whole run's, then each step's."""


class SystemErrors(Record):
    """The shares of a system's errors, over runs with a verdict."""

    system: str
    total: int
    """All questions."""
    measured: int
    """Questions with a verdict and only short answers: those behind the shares."""
    shares: dict[str, Measurement]
    steps: dict[int, dict[str, Measurement]]
    """The same by the step's index, over runs whose step with that index asked a model."""


class ErrorComparison(Record):
    """Systems on the questions with a verdict for all of them."""

    right: Inconsistency
    questions: int
    """Those with only short answers: the ratios of errors are over these."""
    errors: dict[ErrorKind, Matrix]


class ErrorReport(Record):
    metric: str
    """The metric of the verdicts."""
    threshold: float
    max_words: int
    """Questions with a longer answer of any system are left out of all but `comparison.right`."""
    too_long: int
    """The number of those questions."""
    systems: tuple[SystemErrors, ...]
    comparison: ErrorComparison | None
    """None with one system only."""
    runs: tuple[RunErrors, ...]


def error_report(
    runs: Sequence[Run],
    metric: AnswerMetric,
    *,
    by: By = "workflow",
    threshold: float = 0.8,
    max_words: int = MAX_WORDS,
    seed: int = 0,
) -> ErrorReport:
    """
    Args:
        by: the field that names a run's system.
        threshold: the metric's value from which an answer is right.
        seed: seed of the bootstrap.

    Raises:
        ReaderError, EntailmentError: a model failed.
    """
    verdicts = metric.score([case_of(run) for run in runs])
    judged = tuple(
        RunErrors(
            id=run.id,
            system=getattr(run, by),
            question=run.question.text,
            answer=run.answer,
            verdict=verdict,
            errors=tuple(of_run(run, verdict, threshold=threshold)),
        )
        for run, verdict in zip(runs, verdicts, strict=True)
    )
    table: dict[str, dict[Question, RunErrors]] = {}
    for run, row in zip(runs, judged, strict=True):
        question = (run.question.text, run.question.answers)
        table.setdefault(row.system, {}).setdefault(question, row)
    long = {
        question
        for rows in table.values()
        for question, row in rows.items()
        if not brief(row.answer or "", max_words=max_words)
    }
    return ErrorReport(
        metric=metric.estimator,
        threshold=threshold,
        max_words=max_words,
        too_long=len(long),
        systems=tuple(
            _system(name, [row for question, row in rows.items() if question not in long], rows)
            for name, rows in table.items()
        ),
        comparison=_compare(table, long, seed) if len(table) > 1 else None,
        runs=judged,
    )


def _system(
    name: str, rows: Sequence[RunErrors], asked: Mapping[Question, RunErrors]
) -> SystemErrors:
    by_step: dict[int, list[AnswerErrors]] = {}
    whole: list[AnswerErrors] = []
    for located in (located for row in rows for located in row.errors):
        if located.errors is not None:
            group = whole if located.step is None else by_step.setdefault(located.step, [])
            group.append(located.errors)
    return SystemErrors(
        system=name,
        total=len(asked),
        measured=len(whole),
        shares=profile(whole),
        steps={step: profile(errors) for step, errors in sorted(by_step.items())},
    )


def _compare(
    table: Mapping[str, Mapping[Question, RunErrors]], long: set[Question], seed: int
) -> ErrorComparison:
    whole = {
        system: {question: row.errors[0].errors for question, row in rows.items()}
        for system, rows in table.items()
    }
    first = next(iter(whole.values()))
    shared = [q for q in first if all(by_question.get(q) for by_question in whole.values())]

    def errors(questions: Sequence[Question]) -> dict[str, list[AnswerErrors]]:
        return {
            system: [e for q in questions if (e := by_question[q]) is not None]
            for system, by_question in whole.items()
        }

    short = [question for question in shared if question not in long]
    right = {system: [e.correct for e in rows] for system, rows in errors(shared).items()}
    return ErrorComparison(
        right=inconsistency(right, seed=seed),
        questions=len(short),
        errors=error_ratios(errors(short)),
    )
