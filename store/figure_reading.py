"""From rows to the figures of an experiment's items: few queries and no records, as there are tens
of thousands of rows and seconds to read them in."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Select, and_, func, select

from hopscope.store.figures import NOT_APPRAISED, Asked, Figures, Retrieval, Value
from hopscope.store.schema import (
    WHOLE_RUN,
    WHOLE_STEP,
    appraisals,
    arms,
    credits,
    items,
    questions,
    runs,
    steps,
)

Credited = dict[tuple[str, str], Value]
"""By meter and rule."""

RULES = ("trajectory", "shapley", "leave_one_out")


def read_figures(connection: Connection, experiment: int, name: str) -> list[Figures]:
    """Of the items that are done, in the order of the plan."""
    asked = _questions(connection, experiment)
    labels = dict(_pairs(connection, _of(arms, experiment, arms.c.position, arms.c.label)))
    counted = _counted(connection, experiment)
    credited = _whole_runs(connection, experiment, chosen(connection, experiment))
    query = (
        select(items.c.question, items.c.arm, items.c.run, items.c.error_type)
        .add_columns(items.c.error_message, runs.c.id, runs.c.answer, runs.c.seconds)
        .outerjoin(runs, runs.c.number == items.c.run)
        .where(items.c.experiment == experiment, items.c.status.in_(("ok", "failed")))
        .order_by(items.c.position)
    )
    nothing: Credited = {}
    return [
        Figures(
            name,
            labels[arm],
            asked[question],
            run_id,
            None if error is None else f"{error}: {message}",
            answer,
            *counted.get(run, (0, 0, 0, 0)),
            seconds or 0.0,
            *_utilities(credited.get(run, nothing)),
        )
        for question, arm, run, error, message, run_id, answer, seconds in connection.execute(query)
    ]


def read_retrievals(connection: Connection, experiment: int) -> list[Retrieval]:
    """Of all its runs, by run, in order."""
    shares = _shares(connection, experiment, chosen(connection, experiment))
    query = (
        select(runs.c.id, steps.c.run, steps.c.index, steps.c.kind)
        .add_columns(steps.c.input_tokens + steps.c.output_tokens)
        .join(items, items.c.run == steps.c.run)
        .join(runs, runs.c.number == steps.c.run)
        .where(items.c.experiment == experiment)
        .order_by(steps.c.run, steps.c.position)
    )
    found: list[Retrieval] = []
    last, ordinal = None, 0
    for run_id, run, index, kind, tokens in connection.execute(query):
        if run != last:
            last, ordinal = run, 0
        if kind == "retrieve":
            ordinal += 1
            given = shares.get((run, index), {})
            values = (given.get(rule, NOT_APPRAISED) for rule in RULES)
            found.append(Retrieval(run_id, ordinal, index, tokens, *values))
        elif ordinal:
            found[-1] = found[-1]._replace(tokens=found[-1].tokens + tokens)
    return found


def chosen(connection: Connection, experiment: int) -> dict[int, int]:
    """The provenance that `tracing.report.chosen` would choose, by run: the one measured last of
    those that measured the whole run."""
    of = (credits.c.run, credits.c.provenance)
    query = (
        select(*of, func.max(appraisals.c.measured))
        .join(items, items.c.run == credits.c.run)
        .outerjoin(
            appraisals,
            and_(
                appraisals.c.run == credits.c.run,
                appraisals.c.provenance == credits.c.provenance,
            ),
        )
        .where(items.c.experiment == experiment, credits.c.step == WHOLE_RUN)
        .where(credits.c.passage == WHOLE_STEP, credits.c.rule == "total")
        .group_by(*of)
        .order_by(*of)
    )
    best: dict[int, tuple[int, Any]] = {}
    for run, provenance, when in connection.execute(query):
        known = best.get(run)
        if known is None or known[1] is None or (when is not None and when >= known[1]):
            best[run] = (provenance, when)
    return {run: provenance for run, (provenance, _) in best.items()}


def _questions(connection: Connection, experiment: int) -> dict[int, Asked]:
    query = (
        select(questions.c.number, questions.c.id, questions.c.text, questions.c.answers)
        .add_columns(questions.c.kind, questions.c.hops)
        .where(questions.c.number.in_(_of(items, experiment, items.c.question)))
    )
    return {
        number: Asked(id, text, tuple(answers), kind, hops)
        for number, id, text, answers, kind, hops in connection.execute(query)
    }


def _counted(connection: Connection, experiment: int) -> dict[int, tuple[int, int, int, int]]:
    """Retrievals, calls, and tokens read and written, by run."""
    query = (
        select(steps.c.run, func.count(steps.c.query), func.sum(steps.c.calls))
        .add_columns(func.sum(steps.c.input_tokens), func.sum(steps.c.output_tokens))
        .where(steps.c.run.in_(_of(items, experiment, items.c.run)))
        .group_by(steps.c.run)
    )
    return {
        run: (int(queries), int(calls), int(read), int(written))
        for run, queries, calls, read, written in connection.execute(query)
    }


def _whole_runs(
    connection: Connection, experiment: int, provenances: dict[int, int]
) -> dict[int, Credited]:
    query = (
        select(credits.c.run, credits.c.provenance, credits.c.meter, credits.c.rule)
        .add_columns(credits.c.value, credits.c.reason)
        .join(items, items.c.run == credits.c.run)
        .where(items.c.experiment == experiment, credits.c.step == WHOLE_RUN)
        .where(credits.c.passage == WHOLE_STEP, credits.c.rule.in_(("level", "total")))
    )
    found: dict[int, Credited] = {}
    for run, provenance, meter, rule, value, reason in connection.execute(query):
        if provenances.get(run) == provenance:
            found.setdefault(run, {})[meter, rule] = reason if value is None else value
    return found


def _shares(
    connection: Connection, experiment: int, provenances: dict[int, int]
) -> dict[tuple[int, int], dict[str, Value]]:
    """SePer's credits by run and step, then by rule."""
    query = (
        select(credits.c.run, credits.c.step, credits.c.provenance, credits.c.rule)
        .add_columns(credits.c.value, credits.c.reason)
        .join(items, items.c.run == credits.c.run)
        .where(items.c.experiment == experiment, credits.c.step != WHOLE_RUN)
        .where(credits.c.passage == WHOLE_STEP, credits.c.meter == "seper")
        .where(credits.c.rule.in_(RULES))
    )
    found: dict[tuple[int, int], dict[str, Value]] = {}
    for run, step, provenance, rule, value, reason in connection.execute(query):
        if provenances.get(run) == provenance:
            found.setdefault((run, step), {})[rule] = reason if value is None else value
    return found


def _utilities(credited: Credited) -> tuple[Value, Value, Value]:
    """SePer with all evidence, ΔSePer, GroGU."""
    before = credited.get(("seper", "level"), NOT_APPRAISED)
    delta = credited.get(("seper", "total"), NOT_APPRAISED)
    after: Value
    if isinstance(before, str) or isinstance(delta, str):
        after = before if isinstance(before, str) else delta
    else:
        after = before + delta
    return after, delta, credited.get(("grogu", "total"), NOT_APPRAISED)


def _of(table: Any, experiment: int, *columns: Any) -> Select[Any]:
    return select(*columns).where(table.c.experiment == experiment)


def _pairs(connection: Connection, query: Select[Any]) -> Iterable[tuple[Any, Any]]:
    return ((row[0], row[1]) for row in connection.execute(query))
