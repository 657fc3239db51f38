"""Read the result rows of an experiment: few queries and no records, so that tens of thousands of
rows take seconds."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Select, Text, func, select, type_coerce

from hopscope.runtime.types import is_timed
from hopscope.store.database.schema import (
    IS_RETRIEVAL,
    RETRIEVALS,
    WHOLE_RUN,
    WHOLE_STEP,
    arms,
    credits,
    items,
    questions,
    runs,
    steps,
)
from hopscope.store.experiments.result_rows import (
    NOT_APPRAISED,
    QuestionRow,
    ResultRow,
    Retrieval,
    Utility,
    Value,
)
from hopscope.tracing.reports.displays import shown

NO_SHARES = ("level", "total")
"""Rules of stored credits that are no shares of a total."""


def read_result_rows(
    connection: Connection, experiment: int, name: str, provenance: int | None
) -> list[ResultRow]:
    """The finished items, in the order of the plan, with utilities of that provenance."""
    by_number = _questions(connection, experiment)
    arm_query = _of(arms, experiment, arms.c.position, arms.c.label)
    labels: dict[int, str] = dict(tuple(row) for row in _rows(connection, arm_query))
    counted = _counted(connection, experiment)
    utilities = _utilities(connection, experiment, provenance)
    query = (
        select(items.c.question, items.c.arm, items.c.run, items.c.error_type)
        .add_columns(items.c.error_message, runs.c.id, runs.c.answer, runs.c.seconds)
        .add_columns(runs.c.workflow)
        .outerjoin(runs, runs.c.number == items.c.run)
        .where(items.c.experiment == experiment, items.c.status.in_(("ok", "failed")))
        .order_by(items.c.position)
    )
    no_utilities: dict[str, Utility] = {}
    return [
        ResultRow(
            name,
            labels[arm],
            by_number[question],
            run_id,
            None if error is None else f"{error}: {message}",
            answer,
            *counted.get(run, (0, 0, 0, 0, 0, 0, 0)),
            _seconds(workflow, seconds),
            utilities.get(run, no_utilities),
        )
        for question, arm, run, error, message, run_id, answer, seconds, workflow in _rows(
            connection, query
        )
    ]


def _seconds(workflow: str | None, seconds: float | None) -> float | None:
    """The time of a run; None for an imported one whose file told no times."""
    return seconds or 0.0 if is_timed(workflow or "", seconds or 0.0) else None


def read_retrievals(
    connection: Connection, experiment: int, provenance: int | None
) -> list[Retrieval]:
    """The retrievals of all its runs, by run, in order, with shares of that provenance."""
    shares = _shares(connection, experiment, provenance)
    query = (
        select(runs.c.id, steps.c.run, steps.c.index, IS_RETRIEVAL)
        .add_columns(steps.c.input_tokens + steps.c.output_tokens, steps.c.uncounted)
        .join(items, items.c.run == steps.c.run)
        .join(runs, runs.c.number == steps.c.run)
        .where(items.c.experiment == experiment)
        .order_by(steps.c.run, steps.c.position)
    )
    retrievals: list[list[Any]] = []
    last, ordinal = None, 0
    for run_id, run, index, retrieved, tokens, uncounted in _rows(connection, query):
        if run != last:
            last, ordinal = run, 0
        if retrieved:
            ordinal += 1
            retrievals.append([run, run_id, ordinal, index, tokens, uncounted])
        elif ordinal:
            retrievals[-1][-2] += tokens
            retrievals[-1][-1] += uncounted
    no_shares: dict[str, dict[str, Value]] = {}
    return [
        Retrieval(
            run_id, ordinal, index, tokens, shares.get((run, index), no_shares), uncounted=uncounted
        )
        for run, run_id, ordinal, index, tokens, uncounted in retrievals
    ]


def _questions(connection: Connection, experiment: int) -> dict[int, QuestionRow]:
    query = (
        select(questions.c.number, questions.c.id, questions.c.text, questions.c.answers)
        .add_columns(questions.c.kind, questions.c.hops)
        .where(questions.c.number.in_(_of(items, experiment, items.c.question)))
    )
    return {
        number: QuestionRow(id, text, tuple(answers), kind, hops)
        for number, id, text, answers, kind, hops in _rows(connection, query)
    }


_COUNTED = (
    "calls",
    "input_tokens",
    "output_tokens",
    "thinking_tokens",
    "cached_tokens",
    "uncounted",
)
"""Columns of steps, in the order of `ResultRow`, after the retrievals."""
Counts = tuple[int, int, int, int, int, int, int]


def _counted(connection: Connection, experiment: int) -> dict[int, Counts]:
    """Retrievals and the sums of `_COUNTED`, by run."""
    query = (
        select(steps.c.run, RETRIEVALS)
        .add_columns(*(func.sum(steps.c[name]) for name in _COUNTED))
        .where(steps.c.run.in_(_of(items, experiment, items.c.run)))
        .group_by(steps.c.run)
    )
    return {run: cast(Counts, tuple(map(int, counts))) for run, *counts in _rows(connection, query)}


def _utilities(
    connection: Connection, experiment: int, provenance: int | None
) -> dict[int, dict[str, Utility]]:
    """By run, then by meter."""
    query = _credits(experiment, credits.c.run).where(
        credits.c.provenance == provenance,
        credits.c.step == WHOLE_RUN,
        credits.c.rule.in_(("total", "level")),
    )
    query = query.add_columns(*_names(), credits.c.value, credits.c.reason)
    found: dict[int, dict[str, dict[str, Value]]] = {}
    for run, rule, meter, value, reason in _rows(connection, query):
        of = found.setdefault(run, {}).setdefault(meter, {})
        of[rule] = reason if value is None else value
    return {
        run: {meter: _utility(of) for meter, of in meters.items()} for run, meters in found.items()
    }


def _utility(of: Mapping[str, Value]) -> Utility:
    before, delta = of.get("level", NOT_APPRAISED), of.get("total", NOT_APPRAISED)
    if isinstance(before, str):
        return Utility(before, delta)
    return Utility(delta if isinstance(delta, str) else before + delta, delta)


def _shares(
    connection: Connection, experiment: int, provenance: int | None
) -> dict[tuple[int, int], dict[str, dict[str, Value]]]:
    """Credits of retrievals for the meters that tables show, by run and step, then by meter and
    rule."""
    totals = _credits(experiment, credits.c.meter).where(
        credits.c.provenance == provenance,
        credits.c.step == WHOLE_RUN,
        credits.c.rule == "total",
    )
    measured = shown(meter for (meter,) in _rows(connection, totals.distinct()))
    if not measured:
        return {}
    # Grouping by step in SQL would sort all rows; in Python they are few enough.
    query = (
        _credits(experiment, credits.c.run, credits.c.step)
        .add_columns(*_names(), credits.c.value, credits.c.reason)
        .join(steps, (steps.c.run == credits.c.run) & (steps.c.index == credits.c.step))
        .where(IS_RETRIEVAL, credits.c.provenance == provenance)
        .where(credits.c.rule.not_in(NO_SHARES), credits.c.meter.in_(measured))
    )
    found: dict[tuple[int, int], dict[str, dict[str, Value]]] = defaultdict(dict)
    for run, step, rule, meter, value, reason in _rows(connection, query):
        found[run, step].setdefault(meter, {})[rule] = reason if value is None else value
    return found


def _names() -> list[ColumnElement[str]]:
    """Rule and meter as raw text: they hold no escaped characters."""
    return [type_coerce(column, Text) for column in (credits.c.rule, credits.c.meter)]


def _credits(experiment: int, *columns: Any) -> Select[Any]:
    """Credits of the experiment's runs, without those of single passages."""
    return select(*columns).where(
        credits.c.run.in_(_of(items, experiment, items.c.run)), credits.c.passage == WHOLE_STEP
    )


def _of(table: Any, experiment: int, *columns: Any) -> Select[Any]:
    return select(*columns).where(table.c.experiment == experiment)


def _rows(connection: Connection, query: Select[Any]) -> Sequence[Any]:
    # Fetching rows one by one takes three times as long.
    return connection.execute(query).all()
