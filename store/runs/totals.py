"""The totals of runs that lists show, kept beside the credits that they follow from: a filter or an
order by them then reads an index, not every credit."""

from collections.abc import Collection

from sqlalchemy import Connection, Select, delete, func, select

from hopscope.store.database.schema import (
    WHOLE_RUN,
    WHOLE_STEP,
    appraisals,
    credits,
    runs,
    totals,
)
from hopscope.store.runs.interning import chunks


def lock(connection: Connection, numbers: Collection[int]) -> None:
    """Let no other process measure these runs until the transaction ends: its totals would stand
    beside the credits of this one. SQLite has only one writer."""
    for chunk in chunks(sorted(numbers)):
        own = select(runs.c.number).where(runs.c.number.in_(chunk)).order_by(runs.c.number)
        connection.execute(own.with_for_update(key_share=True)).all()


def refresh_totals(connection: Connection, numbers: Collection[int]) -> None:
    """Derive the totals of these runs from their credits: those of the appraisal that
    `tracing.reports.appraised.shown` selects from them, which is the last
    `store.runs.reading.in_order_of_measurement`, of those with a value if there are any."""
    for chunk in chunks(sorted(numbers)):
        connection.execute(delete(totals).where(totals.c.run.in_(chunk)))
        connection.execute(totals.insert().from_select(list(totals.c), _shown(chunk)))


def _shown(numbers: Collection[int]) -> Select[tuple[int, str, float | None]]:
    measured = (
        select(func.max(appraisals.c.measured))
        .where(appraisals.c.run == credits.c.run, appraisals.c.provenance == credits.c.provenance)
        .correlate(credits)
        .scalar_subquery()
    )
    timed = (
        select(credits.c.run, credits.c.meter, credits.c.value, credits.c.provenance)
        .add_columns(measured.label("measured"))
        .where(credits.c.run.in_(numbers), credits.c.step == WHOLE_RUN)
        .where(credits.c.passage == WHOLE_STEP, credits.c.rule == "total")
        .subquery()
    )
    last = func.first_value(timed.c.provenance).over(
        partition_by=timed.c.run,
        order_by=(
            timed.c.value.is_(None),
            timed.c.measured.desc().nulls_last(),
            timed.c.provenance.desc(),
        ),
    )
    ranked = select(timed.c.run, timed.c.meter, timed.c.value, timed.c.provenance)
    placed = ranked.add_columns(last.label("shown")).subquery()
    return select(placed.c.run, placed.c.meter, placed.c.value).where(
        placed.c.provenance == placed.c.shown
    )
