"""Summaries for lists of runs: read by two queries, without loading steps."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import Field
from sqlalchemy import Column, Connection, Select, func, select

from hopscope.runtime.types import Record, RunStatus, StopReason, Usage
from hopscope.store.database.schema import RETRIEVALS, credits, runs, steps, totals


class RunSummary(Record):
    """A run in one line."""

    id: str
    question: str
    workflow: str
    reader: str
    retriever: str
    answer: str | None
    status: RunStatus
    stop_reason: StopReason | None
    started: datetime
    seconds: float
    steps: int
    """Steps taken."""
    retrievals: int
    """Steps that sent a query to the retriever."""
    usage: Usage
    credits: int
    """Credits computed so far, those without a value included."""
    seper_delta: float | None
    """Total ΔSePer of the appraisal that `tracing.reports.appraised.shown` selects; None if that
    did not measure it."""
    totals: dict[str, float | None] = Field(default_factory=dict)
    """Totals of the whole run in that appraisal, by meter."""


def read_summaries(
    connection: Connection,
    *,
    limit: int | None,
    workflow: str | None = None,
    status: RunStatus | None = None,
) -> list[RunSummary]:
    """The newest runs first; all of them when `limit` is None."""
    page = select(runs.c.number, *_own()).order_by(runs.c.started.desc(), runs.c.number.desc())
    if workflow is not None:
        page = page.where(runs.c.workflow == workflow)
    if status is not None:
        page = page.where(runs.c.status == status)
    return _summaries(connection, page.limit(limit))


def summaries_of(connection: Connection, numbers: Sequence[int]) -> list[RunSummary]:
    """The summaries of the runs of these numbers, in this order."""
    page = select(runs.c.number, *_own()).where(runs.c.number.in_(numbers))
    ids = select(runs.c.number, runs.c.id).where(runs.c.number.in_(numbers))
    known: dict[str, int] = {id: number for number, id in connection.execute(ids)}
    place = {number: at for at, number in enumerate(numbers)}
    return sorted(_summaries(connection, page), key=lambda each: place[known[each.id]])


def _own() -> list[Column[Any]]:
    """The columns of a run's own row."""
    return [
        runs.c[name]
        for name in RunSummary.model_fields
        if name not in ("steps", "retrievals", "usage", "credits", "seper_delta", "totals")
    ]


def _summaries(connection: Connection, page: Select[Any]) -> list[RunSummary]:
    """The summaries of the selected runs, the newest first."""
    listed = page.subquery()
    counted = (
        select(func.count()).where(credits.c.run == listed.c.number).correlate(listed)
    ).scalar_subquery()
    query = (
        select(
            listed,
            func.count(steps.c.run).label("steps"),
            RETRIEVALS.label("retrievals"),
            *(func.coalesce(func.sum(steps.c[name]), 0).label(name) for name in Usage.model_fields),
            counted.label("credits"),
        )
        .outerjoin(steps, steps.c.run == listed.c.number)
        .group_by(*listed.c)
        .order_by(listed.c.started.desc(), listed.c.number.desc())
    )
    rows = connection.execute(query).mappings().all()
    shown = _totals(connection, select(listed.c.number))
    found = []
    for row in rows:
        usage = Usage(**{name: int(row[name]) for name in Usage.model_fields})
        names = RunSummary.model_fields.keys() - {"usage", "seper_delta", "totals"}
        own_totals = shown.get(row["number"], {})
        found.append(
            RunSummary(
                usage=usage,
                seper_delta=own_totals.get("seper"),
                totals=own_totals,
                **{name: row[name] for name in names},
            )
        )
    return found


def _totals(
    connection: Connection, numbers: Select[tuple[int]]
) -> dict[int, dict[str, float | None]]:
    """Totals of whole runs by run number and meter, of the appraisal that is shown."""
    query = select(totals).where(totals.c.run.in_(numbers)).order_by(totals.c.run, totals.c.meter)
    found: dict[int, dict[str, float | None]] = {}
    for run, meter, value in connection.execute(query):
        found.setdefault(run, {})[meter] = value
    return found
