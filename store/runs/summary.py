"""Summaries for lists of runs: read by two queries, without loading steps."""

from datetime import datetime

from pydantic import Field
from sqlalchemy import Connection, Select, func, select

from hopscope.runtime.types import Record, RunStatus, StopReason, Usage
from hopscope.store.database.schema import WHOLE_RUN, WHOLE_STEP, credits, runs, steps
from hopscope.store.runs.reading import last_measured


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
    """Total ΔSePer of the appraisal that `tracing.reports.report.chosen` selects; None if that did
    not measure it."""
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
    own = [
        runs.c[name]
        for name in RunSummary.model_fields
        if name not in ("steps", "retrievals", "usage", "credits", "seper_delta", "totals")
    ]
    page = select(runs.c.number, *own).order_by(runs.c.started.desc(), runs.c.number.desc())
    if workflow is not None:
        page = page.where(runs.c.workflow == workflow)
    if status is not None:
        page = page.where(runs.c.status == status)
    listed = page.limit(limit).subquery()
    counted = (
        select(func.count()).where(credits.c.run == listed.c.number).correlate(listed)
    ).scalar_subquery()
    total = credits.alias()
    whole = (total.c.run == listed.c.number) & (total.c.step == WHOLE_RUN)
    chosen = (
        select(total.c.provenance)
        .where(whole & (total.c.rule == "total"))
        .order_by(last_measured(total).desc().nulls_last(), total.c.provenance.desc())
        .limit(1)
        .correlate(listed)
    ).scalar_subquery()
    query = (
        select(
            listed,
            func.count(steps.c.run).label("steps"),
            func.count(steps.c.query).label("retrievals"),
            *(func.coalesce(func.sum(steps.c[name]), 0).label(name) for name in Usage.model_fields),
            counted.label("credits"),
            chosen.label("provenance"),
        )
        .outerjoin(steps, steps.c.run == listed.c.number)
        .group_by(*listed.c)
        .order_by(listed.c.started.desc(), listed.c.number.desc())
    )
    rows = connection.execute(query).mappings().all()
    totals = _totals(connection, select(listed.c.number))
    found = []
    for row in rows:
        usage = Usage(**{name: int(row[name]) for name in Usage.model_fields})
        names = RunSummary.model_fields.keys() - {"usage", "seper_delta", "totals"}
        own_totals = totals.get((row["number"], row["provenance"]), {})
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
) -> dict[tuple[int, int], dict[str, float | None]]:
    """Totals of whole runs by meter, by run number and provenance number."""
    query = select(credits.c.run, credits.c.provenance, credits.c.meter, credits.c.value).where(
        credits.c.run.in_(numbers),
        credits.c.step == WHOLE_RUN,
        credits.c.passage == WHOLE_STEP,
        credits.c.rule == "total",
    )
    found: dict[tuple[int, int], dict[str, float | None]] = {}
    for run, provenance, meter, value in connection.execute(query):
        found.setdefault((run, provenance), {})[meter] = value
    return found
