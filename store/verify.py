"""Is what the database holds what was put in? Hashes are derived again from the content."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError

from hopscope.runtime.types import Passage, Provenance, digest
from hopscope.store.interning import listing_hash, prompt_hash
from hopscope.store.reading import read_appraisals, read_credits, read_run
from hopscope.store.schema import listings, messages, passages, prompts, provenances, runs, texts

FEW: dict[str, Any] = {"yield_per": 1000}
"""Rows held at a time, of tables that may not fit into memory."""


class Fault(NamedTuple):
    """A row that is not what its hash says."""

    table: str
    row: str
    """The hash it is kept under, or the run's id."""
    problem: str


def find_faults(connection: Connection) -> Iterator[Fault]:
    """Faults of what is kept by hash, of references and of runs that cannot be read."""
    yield from _passages(connection)
    yield from _prompts(connection)
    yield from _provenances(connection)
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
        provenance = Provenance(**{name: row[name] for name in Provenance.model_fields})
        if provenance.settings_hash != row["settings_hash"]:
            yield Fault("provenances", row["settings_hash"], "a field has changed")


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
            read_run(connection, number)
            read_credits(connection, number)
            read_appraisals(connection, number)
        except (ValueError, KeyError, SQLAlchemyError) as error:
            yield Fault("runs", run_id, f"cannot be read: {error}")
