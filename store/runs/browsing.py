"""Pages of a list of runs: filters, order, search and paging in SQL, so that a database of 100,000
runs is as quick as a small one."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from hopscope.runtime.types import Record, RunStatus
from hopscope.store.database.schema import (
    arms,
    experiments,
    items,
    questions,
    runs,
    totals,
)
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
    """The page; at most six queries, whatever its filters."""
    total = _count(connection, select(runs.c.number).where(*_conditions(query)))
    numbers = _by_gain(connection, query) if query.sort == "gain" else _sorted(connection, query)
    found = summaries_of(connection, numbers)
    return RunPage(total=total, page=query.page, size=query.size, runs=tuple(found))


def _count(connection: Connection, wanted: Select[Any]) -> int:
    return connection.execute(select(func.count()).select_from(wanted.subquery())).scalar_one()


def _sorted(connection: Connection, query: RunQuery) -> list[int]:
    """Numbers of the page's runs."""
    order = [_direction(column, query) for column in (runs.c[query.sort], runs.c.number)]
    page = select(runs.c.number).where(*_conditions(query)).order_by(*order)
    return list(connection.execute(page.limit(query.size).offset(_start(query))).scalars())


def _by_gain(connection: Connection, query: RunQuery) -> list[int]:
    """Numbers of the page's runs, by total; unmeasured ones come last in both directions. To sort
    them with the others, the database would have to read every run."""
    own = select(totals.c.run).where(totals.c.meter == query.meter, totals.c.value.is_not(None))
    conditions = _conditions(query)
    measured = own
    if conditions:
        measured = own.where(totals.c.run.in_(select(runs.c.number).where(*conditions)))
    order = [_direction(column, query) for column in (totals.c.value, totals.c.run)]
    page = measured.order_by(*order).limit(query.size).offset(_start(query))
    numbers = list(connection.execute(page).scalars())
    missing = query.size - len(numbers)
    if missing:
        before = max(0, _start(query) - _count(connection, measured))
        rest = select(runs.c.number).where(*conditions, runs.c.number.not_in(own))
        page = rest.order_by(_direction(runs.c.number, query)).limit(missing).offset(before)
        numbers += connection.execute(page).scalars()
    return numbers


def _start(query: RunQuery) -> int:
    return (query.page - 1) * query.size


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


def _signed(query: RunQuery) -> ColumnElement[bool]:
    """Of the run's total in the appraisal that is shown; a run without one is unmeasured."""
    chosen = select(totals.c.run).where(totals.c.meter == query.meter)
    match query.gain:
        case "positive":
            return runs.c.number.in_(chosen.where(totals.c.value > 0))
        case "negative":
            return runs.c.number.in_(chosen.where(totals.c.value < 0))
        case "none":
            return runs.c.number.in_(chosen.where(totals.c.value == 0))
        case _:
            return runs.c.number.not_in(chosen.where(totals.c.value.is_not(None)))


def _direction(column: ColumnElement[Any], query: RunQuery) -> ColumnElement[Any]:
    return column.desc() if query.descending else column.asc()
