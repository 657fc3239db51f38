"""From rows to the figures of an experiment's items: few queries and no records, as there are tens
of thousands of rows and seconds to read them in."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, Select, Text, func, select, type_coerce

from hopscope.store.figures import NOT_APPRAISED, Asked, Figures, Retrieval, Value
from hopscope.store.schema import (
    WHOLE_RUN,
    WHOLE_STEP,
    arms,
    credits,
    items,
    questions,
    runs,
    steps,
)

RULES = ("trajectory", "shapley", "leave_one_out")


def read_figures(
    connection: Connection, experiment: int, name: str, provenance: int | None
) -> list[Figures]:
    """Of the items that are done, in the order of the plan; utilities of that provenance."""
    asked = _questions(connection, experiment)
    of_arms = _of(arms, experiment, arms.c.position, arms.c.label)
    labels: dict[int, str] = dict(tuple(row) for row in _rows(connection, of_arms))
    counted = _counted(connection, experiment)
    utilities = _utilities(connection, experiment, provenance)
    query = (
        select(items.c.question, items.c.arm, items.c.run, items.c.error_type)
        .add_columns(items.c.error_message, runs.c.id, runs.c.answer, runs.c.seconds)
        .outerjoin(runs, runs.c.number == items.c.run)
        .where(items.c.experiment == experiment, items.c.status.in_(("ok", "failed")))
        .order_by(items.c.position)
    )
    none = (NOT_APPRAISED,) * 3
    return [
        Figures(
            name,
            labels[arm],
            asked[question],
            run_id,
            None if error is None else f"{error}: {message}",
            answer,
            *counted.get(run, (0, 0, 0, 0, 0, 0, 0)),
            seconds or 0.0,
            *utilities.get(run, none),
        )
        for question, arm, run, error, message, run_id, answer, seconds in _rows(connection, query)
    ]


def read_retrievals(
    connection: Connection, experiment: int, provenance: int | None
) -> list[Retrieval]:
    """Of all its runs, by run, in order; shares of that provenance."""
    shares = _shares(connection, experiment, provenance)
    query = (
        select(runs.c.id, steps.c.run, steps.c.index, steps.c.kind)
        .add_columns(steps.c.input_tokens + steps.c.output_tokens, steps.c.uncounted)
        .join(items, items.c.run == steps.c.run)
        .join(runs, runs.c.number == steps.c.run)
        .where(items.c.experiment == experiment)
        .order_by(steps.c.run, steps.c.position)
    )
    made: list[list[Any]] = []
    last, ordinal = None, 0
    for run_id, run, index, kind, tokens, uncounted in _rows(connection, query):
        if run != last:
            last, ordinal = run, 0
        if kind == "retrieve":
            ordinal += 1
            made.append([run, run_id, ordinal, index, tokens, uncounted])
        elif ordinal:
            made[-1][-2] += tokens
            made[-1][-1] += uncounted
    nothing: dict[str, Value] = {}
    found = []
    for run, run_id, ordinal, index, tokens, uncounted in made:
        of = shares.get((run, index), nothing)
        path, share, without = (of.get(rule, NOT_APPRAISED) for rule in RULES)
        found.append(
            Retrieval(run_id, ordinal, index, tokens, path, share, without, uncounted=uncounted)
        )
    return found


def _questions(connection: Connection, experiment: int) -> dict[int, Asked]:
    query = (
        select(questions.c.number, questions.c.id, questions.c.text, questions.c.answers)
        .add_columns(questions.c.kind, questions.c.hops)
        .where(questions.c.number.in_(_of(items, experiment, items.c.question)))
    )
    return {
        number: Asked(id, text, tuple(answers), kind, hops)
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
"""Columns of steps, as `Figures` has them after the retrievals."""
Counts = tuple[int, int, int, int, int, int, int]


def _counted(connection: Connection, experiment: int) -> dict[int, Counts]:
    """Retrievals and the sums of `_COUNTED`, by run."""
    query = (
        select(steps.c.run, func.count(steps.c.query))
        .add_columns(*(func.sum(steps.c[name]) for name in _COUNTED))
        .where(steps.c.run.in_(_of(items, experiment, items.c.run)))
        .group_by(steps.c.run)
    )
    return {run: cast(Counts, tuple(map(int, counts))) for run, *counts in _rows(connection, query)}


def _utilities(
    connection: Connection, experiment: int, provenance: int | None
) -> dict[int, tuple[Value, ...]]:
    """SePer with all evidence, ΔSePer and GroGU, by run."""
    query = _credits(experiment, credits.c.run).where(
        credits.c.provenance == provenance,
        credits.c.step == WHOLE_RUN,
        (credits.c.rule == "total") | ((credits.c.rule == "level") & (credits.c.meter == "seper")),
    )
    # As they stand in the database: rules and meters have no characters that need be read back.
    names = [type_coerce(column, Text) for column in (credits.c.rule, credits.c.meter)]
    query = query.add_columns(*names, credits.c.value, credits.c.reason)
    found: dict[int, dict[str, Value]] = {}
    for run, rule, meter, value, reason in _rows(connection, query):
        of = found.setdefault(run, {})
        of["before" if rule == "level" else meter] = reason if value is None else value
    return {run: _utility(of) for run, of in found.items()}


def _utility(of: Mapping[str, Value]) -> tuple[Value, ...]:
    before, delta = of.get("before", NOT_APPRAISED), of.get("seper", NOT_APPRAISED)
    grogu = of.get("grogu", NOT_APPRAISED)
    if isinstance(before, str):
        return (before, delta, grogu)
    return (delta if isinstance(delta, str) else before + delta, delta, grogu)


def _shares(
    connection: Connection, experiment: int, provenance: int | None
) -> dict[tuple[int, int], dict[str, Value]]:
    """SePer's credits of retrievals, by run and step, then by rule."""
    # Grouping them by step in SQL would sort them; they are few enough.
    query = (
        _credits(experiment, credits.c.run, credits.c.step, credits.c.rule)
        .add_columns(credits.c.value, credits.c.reason)
        .join(steps, (steps.c.run == credits.c.run) & (steps.c.index == credits.c.step))
        .where(steps.c.kind == "retrieve", credits.c.provenance == provenance)
        .where(credits.c.meter == "seper", credits.c.rule.in_(RULES))
    )
    found: dict[tuple[int, int], dict[str, Value]] = defaultdict(dict)
    for run, step, rule, value, reason in _rows(connection, query):
        found[run, step][rule] = reason if value is None else value
    return found


def _credits(experiment: int, *columns: Any) -> Select[Any]:
    """Credits of its runs, without those of single passages."""
    return select(*columns).where(
        credits.c.run.in_(_of(items, experiment, items.c.run)), credits.c.passage == WHOLE_STEP
    )


def _of(table: Any, experiment: int, *columns: Any) -> Select[Any]:
    return select(*columns).where(table.c.experiment == experiment)


def _rows(connection: Connection, query: Select[Any]) -> Sequence[Any]:
    # One by one they take three times as long.
    return connection.execute(query).all()
