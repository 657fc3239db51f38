"""Read the results of an experiment as columns: SQL sums over steps and credits, and numbers of a
run come in one row."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Select, Text, case, func, select, type_coerce

from hopscope.runtime.types import Usage, is_timed
from hopscope.store.database.columns import AnyText
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
from hopscope.store.experiments.result_columns import Numbers, ResultColumns, RetrievalColumns
from hopscope.store.experiments.result_rows import QuestionRow

if TYPE_CHECKING:
    from hopscope.store.experiments.result_columns import Floats, Places

NO_SHARES = ("level", "total")
"""Rules of stored credits that are no shares of a total."""
UNESCAPED = AnyText().process_result_value
"""The text that the driver tells of such a column."""
FETCHED = 500
"""Rows fetched together: fewer than the new objects after which Python collects garbage."""
_LARGEST = 1 << 20
"""More steps than a run has."""


def read_result_columns(
    connection: Connection, experiment: int, name: str, provenance: int | None
) -> ResultColumns:
    """The finished items, in the order of the plan, with utilities of that provenance."""
    arm_query = select(arms.c.position, arms.c.label).where(arms.c.experiment == experiment)
    labels = dict(tuple(row) for row in _rows(connection, arm_query))
    query = (
        select(items.c.question, items.c.arm, items.c.run, items.c.status)
        .add_columns(runs.c.answer, runs.c.seconds, runs.c.workflow)
        .outerjoin(runs, runs.c.number == items.c.run)
        .where(items.c.experiment == experiment, items.c.status.in_(("ok", "failed")))
        .order_by(items.c.position)
    )
    asked, arm, run, status, told, seconds, workflow = _columns(connection, query)
    answers = [UNESCAPED(each, connection.dialect) for each in told]
    distinct, places = _questions(connection, experiment, asked)
    at = {position: place for place, position in enumerate(labels)}
    numbers = np.array([-1 if number is None else number for number in run], np.int64)
    counts = _counts(connection, experiment, numbers)
    levels, deltas = _utilities(connection, experiment, provenance, numbers)
    timed = {each: is_timed(each or "", 0.0) for each in set(workflow)}
    return ResultColumns(
        experiment=name,
        labels=list(labels.values()),
        questions=distinct,
        arm=np.array([at[position] for position in arm], np.int64),
        question=places,
        run=numbers,
        failed=np.array([each == "failed" for each in status], bool),
        answers=answers,
        retrievals=counts["retrievals"],
        usage={each: counts[each] for each in Usage.model_fields},
        seconds=np.array(
            [
                took or (0.0 if timed[by] else np.nan)
                for took, by in zip(seconds, workflow, strict=True)
            ],
            float,
        ),
        levels=levels,
        deltas=deltas,
    )


def read_retrieval_columns(
    connection: Connection, experiment: int, provenance: int | None, meter: str, run: "Places"
) -> RetrievalColumns:
    """The retrievals of these runs, by run, with the meter's shares of that provenance."""
    query = (
        select(steps.c.run, steps.c.index, IS_RETRIEVAL)
        .add_columns(steps.c.input_tokens + steps.c.output_tokens, steps.c.uncounted)
        .where(steps.c.run.in_(_own(experiment)))
        .order_by(steps.c.run, steps.c.position)
    )
    columns = _columns(connection, query)
    of, index = (np.array(column, np.int64) for column in columns[:2])
    item = _places(run, of)
    known = item >= 0
    of, index, item = of[known], index[known], item[known]
    retrieved = np.array(columns[2], bool)[known]
    tokens, uncounted = (np.array(column, float)[known] for column in columns[3:])
    # The number of the last retrieval of all until each step, and the first of its run.
    last = np.cumsum(retrieved)
    begins = np.flatnonzero(np.diff(of, prepend=-1))
    before = np.repeat(
        (last - retrieved)[begins], np.diff(begins, append=len(of)) if len(of) else []
    )
    ordinal = last - before
    paid = ordinal > 0  # steps before a run's first retrieval are no cost of it

    def summed(of_steps: "Floats") -> "Floats":
        found = np.bincount(last[paid] - 1, of_steps[paid], int(retrieved.sum()))
        return found.astype(float)

    keys = _key(of[retrieved], index[retrieved])
    return RetrievalColumns(
        item=item[retrieved],
        ordinal=ordinal[retrieved],
        tokens=summed(tokens),
        uncounted=summed(uncounted),
        shares=_shares(connection, experiment, provenance, meter, keys),
    )


def _questions(
    connection: Connection, experiment: int, asked: Sequence[int]
) -> tuple[list[QuestionRow], "Places"]:
    """The distinct questions and the index of each item's. Rows that differ only in what tables do
    not tell, such as the supporting passages, are one question."""
    query = (
        select(questions.c.number, questions.c.id, questions.c.text, questions.c.answers)
        .add_columns(questions.c.kind, questions.c.hops)
        .where(questions.c.number.in_(_of(items.c.question, experiment)))
    )
    rows = {
        number: QuestionRow(id, text, tuple(answers), kind, hops)
        for number, id, text, answers, kind, hops in _rows(connection, query)
    }
    found: dict[QuestionRow, int] = {}
    by_number = {
        number: found.setdefault(rows[number], len(found)) for number in dict.fromkeys(asked)
    }
    return list(found), np.array([by_number[number] for number in asked], np.int64)


def _counts(connection: Connection, experiment: int, run: "Places") -> dict[str, "Floats"]:
    """Retrievals and the sums of usage of each run; 0 without a run."""
    names = list(Usage.model_fields)
    query = (
        select(steps.c.run, RETRIEVALS)
        .add_columns(*(func.sum(steps.c[name]) for name in names))
        .where(steps.c.run.in_(_own(experiment)))
        .group_by(steps.c.run)
    )
    of, *sums = _columns(connection, query)
    places = _places(np.array(of, np.int64), run)
    return {
        name: np.where(places >= 0, np.append(np.array(values, float), 0.0)[places], 0.0)
        for name, values in zip(("retrievals", *names), sums, strict=True)
    }


def _utilities(
    connection: Connection, experiment: int, provenance: int | None, run: "Places"
) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
    """Levels and changes by meter."""
    whole = _credits(experiment, provenance, type_coerce(credits.c.meter, Text))
    whole = whole.where(credits.c.step == WHOLE_RUN, credits.c.rule.in_(NO_SHARES))
    meters = sorted(meter for (meter,) in _rows(connection, whole.distinct()))
    pairs = [(meter, rule) for meter in meters for rule in NO_SHARES]
    query = _pivot(
        _credits(experiment, provenance, credits.c.run).where(credits.c.step == WHOLE_RUN),
        [(credits.c.meter == meter) & (credits.c.rule == rule) for meter, rule in pairs],
    )
    values = _columns(connection, query.group_by(credits.c.run))
    places = _places(run, np.array(values[0], np.int64))
    known = places >= 0
    read = {pair: np.full(len(run), np.nan) for pair in pairs}
    for pair, column in zip(pairs, values[1:], strict=True):
        read[pair][places[known]] = np.array(column, float)[known]
    reasons: dict[tuple[str, str], dict[int, str]] = {pair: {} for pair in pairs}
    missing = whole.with_only_columns(credits.c.run, *_names(), credits.c.reason)
    complete = all(np.isfinite(column[run >= 0]).all() for column in read.values())
    rows = [] if complete else _rows(connection, missing.where(credits.c.value.is_(None)))
    for place, (_, rule, meter, reason) in zip(
        _places(run, np.array([row[0] for row in rows], np.int64)), rows, strict=True
    ):
        if place >= 0:
            reasons[meter, rule][int(place)] = reason
    levels, deltas = {}, {}
    for meter in meters:
        before, change = read[meter, "level"], read[meter, "total"]
        why, whether = reasons[meter, "level"], reasons[meter, "total"]
        # Where the value without evidence is known, the change is what is missing.
        unknown = {place: told for place, told in whether.items() if not np.isnan(before[place])}
        levels[meter] = Numbers(before + change, {**unknown, **why})
        deltas[meter] = Numbers(change, whether)
    return levels, deltas


def _shares(
    connection: Connection, experiment: int, provenance: int | None, meter: str, keys: "Places"
) -> dict[str, Numbers]:
    """The meter's credits of the retrievals with these keys, by rule."""
    own = _credits(experiment, provenance, type_coerce(credits.c.rule, Text)).where(
        credits.c.meter == meter,
        credits.c.step > WHOLE_RUN,
        credits.c.rule.not_in(NO_SHARES),
    )
    rules = sorted(rule for (rule,) in _rows(connection, own.distinct()))
    place = (credits.c.run, credits.c.step)
    query = _pivot(own.with_only_columns(*place), [credits.c.rule == rule for rule in rules])
    of, step, *values = _columns(connection, query.group_by(*place))
    found = _places(_key(np.array(of, np.int64), np.array(step, np.int64)), keys)
    missing = own.with_only_columns(*place, type_coerce(credits.c.rule, Text), credits.c.reason)
    reasons: dict[str, dict[int, str]] = {rule: {} for rule in rules}
    taken = {
        rule: np.where(found >= 0, np.append(np.array(column, float), np.nan)[found], np.nan)
        for rule, column in zip(rules, values, strict=True)
    }
    complete = all(np.isfinite(column).all() for column in taken.values())
    rows = [] if complete else _rows(connection, missing.where(credits.c.value.is_(None)))
    if rows:
        untold = _key(*(np.array([row[i] for row in rows], np.int64) for i in (0, 1)))
        by_key: dict[int, list[int]] = {}
        for retrieval in np.flatnonzero(np.isin(keys, untold)):
            by_key.setdefault(int(keys[retrieval]), []).append(int(retrieval))
        for key, (*_, rule, reason) in zip(untold, rows, strict=True):
            reasons[rule] |= dict.fromkeys(by_key.get(int(key), []), reason)
    return {
        rule: Numbers(column, reasons[rule])
        for rule, column in taken.items()
        if reasons[rule] or not np.isnan(column).all()
    }


def _key(run: "Places", step: "Places") -> "Places":
    return run * _LARGEST + step


def _places(known: "Places", wanted: "Places") -> "Places":
    """The index of each wanted number among the known ones, which are distinct; -1 without one."""
    if not len(known):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(known, kind="stable")
    at = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    return np.where(known[at] == wanted, at, -1)


def _pivot(query: Select[Any], conditions: Iterable[ColumnElement[bool]]) -> Select[Any]:
    """With a column for each condition: the value of the group's one row that fulfils it."""
    columns = [func.max(case((condition, credits.c.value))) for condition in conditions]
    return query.add_columns(*columns)


def _credits(experiment: int, provenance: int | None, *columns: Any) -> Select[Any]:
    """Credits of the experiment's runs, without those of single passages."""
    return select(*columns).where(
        credits.c.run.in_(_own(experiment)),
        credits.c.passage == WHOLE_STEP,
        credits.c.provenance == provenance,
    )


def _names() -> list[ColumnElement[str]]:
    """Rule and meter as raw text: they hold no escaped characters."""
    return [type_coerce(column, Text) for column in (credits.c.rule, credits.c.meter)]


def _own(experiment: int) -> Select[Any]:
    return _of(items.c.run, experiment)


def _of(column: ColumnElement[Any], experiment: int) -> Select[Any]:
    return select(column).where(items.c.experiment == experiment)


def _columns(connection: Connection, query: Select[Any]) -> Sequence[Sequence[Any]]:
    """The columns of the rows as the driver tells them: a row object and a conversion for each
    cell take as long as the query. So do collections of garbage among hundreds of thousands of
    rows, which few at a time do not cause."""
    result = connection.execute(query)
    found: list[list[Any]] = [[] for _ in query.selected_columns]
    while rows := result.cursor.fetchmany(FETCHED) if result.cursor else []:
        for column, values in zip(found, zip(*rows, strict=True), strict=True):
            column.extend(values)
    result.close()
    return found


def _rows(connection: Connection, query: Select[Any]) -> Sequence[Any]:
    # Fetching rows one by one takes three times as long.
    return connection.execute(query).all()
