"""Keep a thing once: look rows up by their hash and add those that are missing.

Invariant: what is found by a hash has that hash, and never changes. Rows go in in the order of
their hashes, so that two processes that add the same things wait for each other and never
block each other.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Column, Connection, Select, Table, bindparam, select

from hopscope.runtime.types import Passage, Prompt, Provenance, digest
from hopscope.store.experiment_records import Entry
from hopscope.store.schema import (
    listings,
    messages,
    passages,
    prompts,
    provenances,
    questions,
    texts,
)

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

T = TypeVar("T")

CHUNK = 500
"""Values in one IN list: older SQLite allows 999 parameters."""


def prompt_hash(prefix: str, turns: Sequence[tuple[str, str]], shown: Sequence[str]) -> str:
    """Hash of all that a prompt holds; `turns` are role and text hash of its messages."""
    return digest(prefix, str(len(turns)), *(part for turn in turns for part in turn), *shown)


def hash_of(prompt: Prompt) -> str:
    turns = [(message.role, digest(message.content)) for message in prompt.messages]
    return prompt_hash(prompt.prefix, turns, prompt.shown)


def listing_hash(passage: Passage) -> str:
    """Hash of all that a passage holds."""
    return digest(passage.content_hash, passage.id, passage.source)


def intern_passages(connection: Connection, found: Iterable[Passage]) -> dict[Passage, int]:
    """Numbers of the passages' listings."""
    hashes = {passage: listing_hash(passage) for passage in set(found)}
    contents = {p.content_hash: {"title": p.title, "text": p.text} for p in hashes}
    numbers = _intern(connection, passages, passages.c.content_hash, contents)
    rows = {
        key: {"passage": numbers[p.content_hash], "id": p.id, "source": p.source}
        for p, key in hashes.items()
    }
    listed = _intern(connection, listings, listings.c.hash, rows)
    return {passage: listed[key] for passage, key in hashes.items()}


def intern_prompts(connection: Connection, found: Iterable[Prompt]) -> dict[Prompt, int]:
    """Numbers of the prompts."""
    hashes = {prompt: hash_of(prompt) for prompt in set(found)}
    contents = {digest(m.content): {"text": m.content} for p in hashes for m in p.messages}
    text_numbers = _intern(connection, texts, texts.c.hash, contents)
    rows = {key: {"prefix": p.prefix, "shown": list(p.shown)} for p, key in hashes.items()}
    numbers = _intern(connection, prompts, prompts.c.hash, rows)
    turns = [
        {
            "prompt": numbers[key],
            "position": position,
            "role": message.role,
            "text": text_numbers[digest(message.content)],
        }
        for prompt, key in sorted(hashes.items(), key=itemgetter(1))
        for position, message in enumerate(prompt.messages)
    ]
    if turns:
        connection.execute(insert(connection, messages).on_conflict_do_nothing(), turns)
    return {prompt: numbers[key] for prompt, key in hashes.items()}


def intern_provenances(connection: Connection, found: Iterable[Provenance]) -> dict[str, int]:
    """Numbers of the provenances, by `settings_hash`."""
    rows = {p.settings_hash: p.model_dump() for p in found}
    return _intern(connection, provenances, provenances.c.settings_hash, rows)


def intern_entries(connection: Connection, found: Iterable[Entry]) -> dict[str, int]:
    """Numbers of the questions of datasets, by `Entry.hash`."""
    rows = {
        entry.hash: entry.model_dump(exclude={"question", "supporting"})
        | {"supporting": list(entry.supporting)}
        | entry.question.model_dump(exclude={"answers"})
        | {"answers": list(entry.question.answers)}
        for entry in found
    }
    return _intern(connection, questions, questions.c.hash, rows)


def chunks(values: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """The values in lists short enough for one query, made as they come."""
    left = iter(values)
    while found := list(islice(left, size)):
        yield found


def insert(connection: Connection, table: Table) -> "postgresql.Insert | sqlite.Insert":
    """The database's own INSERT, which knows ON CONFLICT."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


def _intern(
    connection: Connection, table: Table, key: Column[str], rows: Mapping[str, Mapping[str, Any]]
) -> dict[str, int]:
    """Row numbers by key, of rows that may or may not be there."""
    numbers = _numbers(connection, table, key, rows)
    missing = sorted(rows.keys() - numbers)
    if missing:
        added = [{key.name: value, **rows[value]} for value in missing]
        connection.execute(insert(connection, table).on_conflict_do_nothing(), added)
        numbers |= _numbers(connection, table, key, missing)
    return numbers


def _numbers(
    connection: Connection, table: Table, key: Column[str], values: Iterable[str]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for chunk in chunks(values):
        rows = connection.execute(_looking(table, key), {"values": chunk})
        found.update(tuple(row) for row in rows)
    return found


@cache
def _looking(table: Table, key: Column[str]) -> Select[Any]:
    """Made once: to make it takes as long as to carry it out."""
    return select(key, table.c.number).where(key.in_(bindparam("values", expanding=True)))
