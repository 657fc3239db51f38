"""Pages of a list of runs: filters, order, search and paging in SQL, so that a database of 100,000
runs is as quick as a small one."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from hopscope.runtime.types import Record, RunStatus
from hopscope.store.database.schema import (
    WHOLE_RUN,
    WHOLE_STEP,
    arms,
    credits,
    experiments,
    items,
    questions,
    runs,
)
from hopscope.store.runs.reading import shown_total
from hopscope.store.runs.summary import RunSummary, summaries_of

Sort = Literal["started", "question", "workflow", "status", "seconds", "gain"]
Gain = Literal["positive", "none", "negative", "unmeasured"]

LARGEST = 200
"""Runs of a page."""


class RunQuery(Record):
    """Which runs, in which order. Without a filter: all, the newest first."""

    experiment: str | None = None
    arm: str | None = None
    """The label of an arm of experiments."""
    workflow: str | None = None
    status: RunStatus | None = None
    hops: int | None = None
    """Of the dataset; only runs of experiments have them."""
    gain: Gain | None = None
    """The sign of the run's total credit by `meter` in the appraisal that is shown."""
    meter: str = "seper"
    search: str = ""
    """Part of the question, the answer or the id, whatever its case."""
    sort: Sort = "started"
    descending: bool = True
    page: int = Field(default=1, ge=1)
    size: int = Field(default=50, ge=1, le=LARGEST)


class RunPage(Record):
    """A page of a list of runs."""

    total: int
    """Runs on all pages."""
    page: int
    size: int
    runs: tuple[RunSummary, ...]


def read_page(connection: Connection, query: RunQuery) -> RunPage:
    """The page; four queries, whatever its filters."""
    wanted = select(runs.c.number).where(*_conditions(query))
    total = connection.execute(select(func.count()).select_from(wanted.subquery())).scalar_one()
    order = [_direction(column, query) for column in (_sorted_by(query), runs.c.number)]
    page = wanted.order_by(*order).limit(query.size).offset((query.page - 1) * query.size)
    numbers = list(connection.execute(page).scalars())
    found = summaries_of(connection, numbers)
    return RunPage(total=total, page=query.page, size=query.size, runs=tuple(found))


def read_workflows(connection: Connection) -> list[str]:
    """The workflows of all runs, by name."""
    return sorted(connection.execute(select(runs.c.workflow).distinct()).scalars())


def _conditions(query: RunQuery) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    plain: Mapping[Any, str | None] = {
        runs.c.workflow: query.workflow,
        runs.c.status: query.status,
    }
    found += [column == value for column, value in plain.items() if value is not None]
    if query.search:
        columns = (runs.c.question, runs.c.answer)
        within = [column.icontains(query.search, autoescape=True) for column in columns]
        found.append(or_(*within, runs.c.id.startswith(query.search, autoescape=True)))
    if query.experiment is not None or query.arm is not None or query.hops is not None:
        found.append(runs.c.number.in_(_of_items(query)))
    if query.gain is not None:
        found.append(_signed(query))
    return found


def _of_items(query: RunQuery) -> Select[Any]:
    """Numbers of the runs of items with these properties."""
    chosen = select(items.c.run).where(items.c.run.is_not(None))
    if query.experiment is not None:
        known = select(experiments.c.number).where(experiments.c.name == query.experiment)
        chosen = chosen.where(items.c.experiment.in_(known))
    if query.arm is not None:
        joined = and_(arms.c.experiment == items.c.experiment, arms.c.position == items.c.arm)
        chosen = chosen.join(arms, joined).where(arms.c.label == query.arm)
    if query.hops is not None:
        chosen = chosen.join(questions, questions.c.number == items.c.question)
        chosen = chosen.where(questions.c.hops == query.hops)
    return chosen


def _total(meter: str) -> ColumnElement[float | None]:
    """The run's total credit in the appraisal that is shown; NULL without one."""
    return (
        select(credits.c.value)
        .where(credits.c.run == runs.c.number, credits.c.step == WHOLE_RUN)
        .where(credits.c.passage == WHOLE_STEP, credits.c.rule == "total")
        .where(credits.c.meter == meter)
        .where(credits.c.provenance == shown_total())
        .correlate(runs)
        .scalar_subquery()
    )


def _signed(query: RunQuery) -> ColumnElement[bool]:
    total = _total(query.meter)
    match query.gain:
        case "positive":
            return total > 0
        case "negative":
            return total < 0
        case "none":
            return total == 0
        case _:
            return total.is_(None)


def _sorted_by(query: RunQuery) -> ColumnElement[Any]:
    return _total(query.meter) if query.sort == "gain" else runs.c[query.sort]


def _direction(column: ColumnElement[Any], query: RunQuery) -> ColumnElement[Any]:
    ordered = column.desc() if query.descending else column.asc()
    # Unmeasured runs come last in both directions; for other columns it would cost the index.
    return ordered.nulls_last() if query.sort == "gain" and column is not runs.c.number else ordered
