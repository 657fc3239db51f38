"""What a list of runs shows of each: found by one query, without loading steps."""

from datetime import datetime

from sqlalchemy import Connection, func, select

from hopscope.runtime.types import Record, RunStatus, StopReason, Usage
from hopscope.store.reading import last_measured
from hopscope.store.schema import WHOLE_RUN, credits, runs, steps


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
    """Total ΔSePer; of several appraisals that of the one `tracing.report.chosen` would show. None
    when that did not measure it."""


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
        if name not in ("steps", "retrievals", "usage", "credits", "seper_delta")
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
    believed = (
        select(credits.c.value)
        .where(
            credits.c.run == listed.c.number,
            credits.c.step == WHOLE_RUN,
            credits.c.rule == "total",
            credits.c.meter == "seper",
            credits.c.provenance == chosen,
        )
        .correlate(listed)
    ).scalar_subquery()
    query = (
        select(
            listed,
            func.count(steps.c.run).label("steps"),
            func.count(steps.c.query).label("retrievals"),
            *(func.coalesce(func.sum(steps.c[name]), 0).label(name) for name in Usage.model_fields),
            counted.label("credits"),
            believed.label("seper_delta"),
        )
        .outerjoin(steps, steps.c.run == listed.c.number)
        .group_by(*listed.c)
        .order_by(listed.c.started.desc(), listed.c.number.desc())
    )
    found = []
    for row in connection.execute(query).mappings():
        usage = Usage(**{name: int(row[name]) for name in Usage.model_fields})
        names = RunSummary.model_fields.keys() - {"usage"}
        found.append(RunSummary(usage=usage, **{name: row[name] for name in names}))
    return found
