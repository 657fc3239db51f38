"""Detect changed rows: hashes are computed again from the content."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, func, select
from sqlalchemy.exc import SQLAlchemyError

from hopscope.runtime.types import Passage, digest
from hopscope.store.database.schema import (
    appraisals,
    coalition_values,
    coalitions,
    credits,
    decisions,
    exchanges,
    games,
    generations,
    listings,
    messages,
    passages,
    placements,
    prompts,
    provenances,
    questions,
    runs,
    steps,
    texts,
)
from hopscope.store.experiments.reading import entry
from hopscope.store.runs.games import read_games
from hopscope.store.runs.interning import coalition_hash, listing_hash, prompt_hash
from hopscope.store.runs.reading import read_appraisals, read_credits, read_run
from hopscope.store.runs.rows import provenance_of, rows_of
from hopscope.store.runs.seals import seal

FEW: dict[str, Any] = {"yield_per": 1000}
"""Rows in memory at a time, for tables that may not fit into it."""

_OWN = (steps, decisions, placements, exchanges, generations)
"""Tables whose rows are of one run."""


class Fault(NamedTuple):
    """A row that does not match its hash."""

    table: str
    row: str
    """Its stored hash, or the run's id."""
    problem: str


def find_faults(connection: Connection) -> Iterator[Fault]:
    """Faults of rows stored by hash, of references, and of runs, credits, appraisals and games that
    do not match their hashes or cannot be read. Deleted credits, appraisals and games are not
    detected."""
    yield from _passages(connection)
    yield from _prompts(connection)
    yield from _provenances(connection)
    yield from _coalitions(connection)
    yield from _questions(connection)
    yield from _references(connection)
    yield from _runs(connection)


def _passages(connection: Connection) -> Iterator[Fault]:
    query = select(
        passages.c.content_hash, passages.c.title, passages.c.text, listings.c.hash
    ).add_columns(listings.c.id, listings.c.source)
    query = query.outerjoin(listings, listings.c.passage == passages.c.number)
    for row in connection.execute(query, execution_options=FEW):
        passage = Passage(title=row.title, text=row.text, id=row.id or "", source=row.source or "")
        if passage.content_hash != row.content_hash:
            yield Fault("passages", row.content_hash, "title or text has changed")
        elif row.hash is not None and listing_hash(passage) != row.hash:
            yield Fault("listings", row.hash, "passage, id or source has changed")


def _prompts(connection: Connection) -> Iterator[Fault]:
    every = connection.execute(select(texts.c.hash, texts.c.text), execution_options=FEW)
    for found, content in every:
        if digest(content) != found:
            yield Fault("texts", found, "text has changed")
    query = (
        select(prompts, messages.c.role, texts.c.hash.label("text_hash"))
        .outerjoin(messages, messages.c.prompt == prompts.c.number)
        .outerjoin(texts, texts.c.number == messages.c.text)
        .order_by(prompts.c.number, messages.c.position)
    )
    for _, group in groupby(
        connection.execute(query, execution_options=FEW), key=lambda row: row.number
    ):
        rows = list(group)
        turns = [(row.role, row.text_hash) for row in rows if row.role is not None]
        if prompt_hash(rows[0].prefix, turns, rows[0].shown) != rows[0].hash:
            yield Fault("prompts", rows[0].hash, "messages, prefix or shown has changed")


def _provenances(connection: Connection) -> Iterator[Fault]:
    for row in connection.execute(select(provenances)).mappings():
        provenance = provenance_of(row)
        if provenance.settings_hash != row["settings_hash"]:
            yield Fault("provenances", row["settings_hash"], "a field has changed")


def _coalitions(connection: Connection) -> Iterator[Fault]:
    every = select(coalitions.c.hash, coalitions.c.members)
    for found, members in connection.execute(every, execution_options=FEW):
        if coalition_hash(members) != found:
            yield Fault("coalitions", found, "members have changed")


def _questions(connection: Connection) -> Iterator[Fault]:
    for row in connection.execute(select(questions), execution_options=FEW).mappings():
        if entry(row).hash != row["hash"]:
            yield Fault("questions", row["hash"], "a field has changed")


def _references(connection: Connection) -> Iterator[Fault]:
    """PostgreSQL enforces references and checks its pages itself."""
    if connection.dialect.name != "sqlite":
        return
    for row in connection.exec_driver_sql("PRAGMA integrity_check"):
        if row[0] != "ok":
            yield Fault("sqlite", "", str(row[0]))
    for row in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield Fault(str(row[0]), str(row[1]), f"refers to a row of {row[2]} that is not there")


def _runs(connection: Connection) -> Iterator[Fault]:
    for number, run_id in connection.execute(select(runs.c.number, runs.c.id)).all():
        try:
            yield from _own(connection, number, run_id)
            yield from _measured(connection, number, run_id)
            yield from _games(connection, number, run_id)
        except (ValueError, KeyError, SQLAlchemyError) as error:
            yield Fault("runs", run_id, f"cannot be read: {error}")


def _own(connection: Connection, number: int, run_id: str) -> Iterator[Fault]:
    """Faults of the run's own rows, compared as raw rows: unchanged rows need not be read as a
    run."""
    own = dict(connection.execute(select(runs).where(runs.c.number == number)).mappings().one())
    if own["hash"] is None:
        read_run(connection, number)
        return
    found = [(table, row) for table in _OWN for row in _rows(connection, table, number)]
    if seal([(runs, own), *found]) != own["hash"]:
        yield Fault("runs", run_id, "the run or one of its steps has changed")


def _measured(connection: Connection, number: int, run_id: str) -> Iterator[Fault]:
    """Faults of its credits and appraisals."""
    unsealed = False
    for table in (credits, appraisals):
        rows = _rows(connection, table, number)
        unsealed |= any(row["hash"] is None for row in rows)
        if any(row["hash"] not in (None, seal([(table, row)])) for row in rows):
            yield Fault(table.name, run_id, f"{table.name} of the run have changed")
    if unsealed:
        read_credits(connection, number)
        read_appraisals(connection, number)


def _games(connection: Connection, number: int, run_id: str) -> Iterator[Fault]:
    """Faults of its games and their values."""
    for game in _rows(connection, games, number):
        every = select(coalition_values).where(coalition_values.c.game == game["number"])
        values = [(coalition_values, dict(row)) for row in connection.execute(every).mappings()]
        if seal([(games, game), *values]) != game["hash"]:
            yield Fault("games", run_id, "coalition values of the run have changed")
    read_games(connection, number)


def _rows(connection: Connection, table: Table, run: int) -> list[dict[str, Any]]:
    """A run's rows by column key, as they are written."""
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, row.values(), strict=True)) for row in rows_of(connection, table, run)]


def count_unsealed(connection: Connection) -> int:
    """Number of runs without a seal, which can only be read."""
    query = select(func.count()).select_from(runs).where(runs.c.hash.is_(None))
    return int(connection.execute(query).scalar_one())
