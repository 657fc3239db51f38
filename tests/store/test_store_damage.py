"""`db check` sees what was changed behind the store's back, whichever column it is in."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Column, Table, select, text, update
from sqlalchemy.exc import IntegrityError

from hopscope.runtime.errors import StoreError
from hopscope.runtime.types import Appraisal, PairCounts, Question, RunError, Usage
from hopscope.store.database.schema import metadata
from hopscope.store.experiments.records import DatasetEntry
from hopscope.store.runs.seals import seal
from hopscope.store.store import Store
from tests.store.run_examples import PROVENANCE, STARTED, a_run, credits_of, games_of
from tests.store.test_store_decisions import LIMIT, WORTH, deciding

CHECKED = (
    "runs", "steps", "decisions", "placements", "exchanges", "generations", "passages", "listings",
    "texts", "prompts", "messages", "provenances", "credits", "appraisals", "questions",
    "games", "coalitions", "coalition_values",
)  # fmt: skip
NUMBERS = {"run", "number"}
"""Where a row is, which the database keeps true."""


def filled(store: Store) -> None:
    run = deciding(WORTH, None, LIMIT)
    failed = run.model_copy(update={"id": "f", "error": RunError(type="E", message="no")})
    store.save_all([run, failed.model_copy(update={"status": "failed"}), a_run("other")])
    usage = Usage(input_tokens=9, output_tokens=3, calls=2)
    store.save_credits(
        credits_of(run),
        [
            Appraisal(run_id=run.id, provenance=PROVENANCE, measured=STARTED, usage=usage,
                      seconds=2.5, pairs=PairCounts(asked=4))
        ],
        games_of(run),
    )  # fmt: skip
    from tests.store.experiments.test_store_experiments import an_experiment

    question = Question(text="Who?", answers=("Ada",), id="q")
    entry = DatasetEntry(question=question, kind="bridge", hops=2, supporting=("Town",))
    store.experiments.add(an_experiment(), [entry])


def other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "!"
        case datetime():
            return value + timedelta(seconds=1)
        case list():
            return [*value, "!"]
        case tuple():
            return tuple(each + 1 for each in value)
        case dict():
            return {**value, "!": 1}
    return None


def cells() -> list[tuple[Table, Column[Any]]]:
    return [
        (table, column)
        for name in CHECKED
        for table in [metadata.tables[name]]
        for column in table.columns
        if column.name not in NUMBERS
    ]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_change_of_any_value_is_found(store: Store) -> None:
    """13 of 60 damages were not: changed answers, outputs, credits."""
    filled(store)
    assert store.verify() == []
    missed, seen = [], 0
    for table, column in cells():
        rows = table.primary_key.columns
        with store._database.reading() as connection:
            every = connection.execute(select(table).where(column.is_not(None))).mappings().all()
        value = next((row for row in every if other(row[column.key]) not in (None, ())), None)
        if value is None:
            continue
        where = [each == value[each.key] for each in rows]
        try:
            with store._database.writing() as connection:
                connection.execute(text("PRAGMA defer_foreign_keys = ON"))
                change = update(table).where(*where)
                connection.execute(change.values({column: other(value[column.key])}))
        except (StoreError, IntegrityError):  # the database itself refuses
            continue
        seen += 1
        if not store.verify():
            missed.append(f"{table.name}.{column.name}")
        now = [each == value[each.key] for each in rows if each is not column]
        if column.primary_key:
            now.append(column == other(value[column.key]))
        with store._database.writing() as connection:
            connection.execute(update(table).where(*now).values({column: value[column.key]}))
        assert store.verify() == [], f"{table.name}.{column.name}"
    assert missed == []
    assert seen > 60


def test_runs_of_older_databases_are_counted_and_not_faulted(store: Store) -> None:
    filled(store)
    with store._database.writing() as connection:
        for name in ("runs", "credits", "appraisals"):
            connection.execute(update(metadata.tables[name]).values(hash=None))
    assert store.verify() == []
    assert store.unsealed() == 3
    store.save(a_run("other", hops=2))
    assert store.unsealed() == 2


def test_a_step_that_is_gone_is_found(store: Store) -> None:
    filled(store)
    with store._database.writing() as connection:
        connection.execute(text("DELETE FROM generations WHERE run = 1"))
    assert [fault.table for fault in store.verify()] == ["runs"]


@pytest.mark.parametrize(
    ("table", "column", "was", "now"),
    [("credits", "value", -0.05, 0.05), ("steps", "parse_ok", False, None)],
)
def test_a_sign_and_a_no_that_turns_to_nothing_are_found(
    table: str, column: str, was: Any, now: Any
) -> None:
    """-0.05 was read as a zero with a sign, and False as what says nothing."""
    own = metadata.tables[table]
    row = {each.key: 1 for each in own.primary_key}
    assert seal([(own, row | {column: was})]) != seal([(own, row | {column: now})])
    assert seal([(own, row | {column: -0.0})]) == seal([(own, row | {column: 0.0})])
