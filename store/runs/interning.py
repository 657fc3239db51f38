"""Store each value once: look rows up by their hash and insert the missing ones.

Invariant: the row under a hash has that hash and never changes. Rows are inserted in the order of
their hashes, so that two processes that insert the same rows wait for each other without a
deadlock.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Column, Connection, Select, Table, bindparam, select

from hopscope.runtime.types import Passage, Prompt, Provenance, digest
from hopscope.store.database.schema import (
    coalitions,
    listings,
    messages,
    passages,
    prompts,
    provenances,
    texts,
)

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

T = TypeVar("T")

CHUNK = 500
"""Values in one IN list: older SQLite allows 999 parameters."""


def prompt_hash(prefix: str, turns: Sequence[tuple[str, str]], shown: Sequence[str]) -> str:
    """Hash of a whole prompt; `turns` are role and text hash of its messages."""
    return digest(prefix, str(len(turns)), *(part for turn in turns for part in turn), *shown)


def hash_of(prompt: Prompt) -> str:
    turns = [(message.role, digest(message.content)) for message in prompt.messages]
    return prompt_hash(prompt.prefix, turns, prompt.shown)


def listing_hash(passage: Passage) -> str:
    """Hash of a passage: content, id and source."""
    return digest(passage.content_hash, passage.id, passage.source)


def intern_passages(connection: Connection, values: Iterable[Passage]) -> dict[Passage, int]:
    """Numbers of the passages' listings."""
    hashes = {passage: listing_hash(passage) for passage in set(values)}
    contents = {p.content_hash: {"title": p.title, "text": p.text} for p in hashes}
    numbers = intern(connection, passages, passages.c.content_hash, contents)
    rows = {
        key: {"passage": numbers[p.content_hash], "id": p.id, "source": p.source}
        for p, key in hashes.items()
    }
    listed = intern(connection, listings, listings.c.hash, rows)
    return {passage: listed[key] for passage, key in hashes.items()}


def intern_prompts(connection: Connection, values: Iterable[Prompt]) -> dict[Prompt, int]:
    """Numbers of the prompts."""
    hashes = {prompt: hash_of(prompt) for prompt in set(values)}
    contents = {digest(m.content): {"text": m.content} for p in hashes for m in p.messages}
    text_numbers = intern(connection, texts, texts.c.hash, contents)
    rows = {key: {"prefix": p.prefix, "shown": list(p.shown)} for p, key in hashes.items()}
    numbers = intern(connection, prompts, prompts.c.hash, rows)
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


def coalition_hash(members: Sequence[int]) -> str:
    """Hash of a set of players."""
    return digest(*map(str, members))[:16]


def intern_coalitions(
    connection: Connection, values: Iterable[tuple[int, ...]]
) -> dict[tuple[int, ...], int]:
    """Numbers of the coalitions, by their members."""
    hashes = {members: coalition_hash(members) for members in set(values)}
    rows = {key: {"members": members} for members, key in hashes.items()}
    numbers = intern(connection, coalitions, coalitions.c.hash, rows)
    return {members: numbers[key] for members, key in hashes.items()}


def intern_texts(connection: Connection, values: Iterable[str]) -> dict[str, int]:
    """Numbers of the texts."""
    hashes = {text: digest(text) for text in set(values)}
    rows = {key: {"text": text} for text, key in hashes.items()}
    numbers = intern(connection, texts, texts.c.hash, rows)
    return {text: numbers[key] for text, key in hashes.items()}


def intern_provenances(connection: Connection, values: Iterable[Provenance]) -> dict[str, int]:
    """Numbers of the provenances, by `settings_hash`."""
    rows = {p.settings_hash: p.model_dump() for p in values}
    return intern(connection, provenances, provenances.c.settings_hash, rows)


def chunks(values: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """The values in lists that are short enough for one query, lazily."""
    left = iter(values)
    while chunk := list(islice(left, size)):
        yield chunk


def insert(connection: Connection, table: Table) -> "postgresql.Insert | sqlite.Insert":
    """The dialect's INSERT, which supports ON CONFLICT."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


def intern(
    connection: Connection, table: Table, key: Column[str], rows: Mapping[str, Mapping[str, Any]]
) -> dict[str, int]:
    """Row numbers by key; missing rows are inserted."""
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
        rows = connection.execute(_lookup(table, key), {"values": chunk})
        found.update(tuple(row) for row in rows)
    return found


@cache
def _lookup(table: Table, key: Column[str]) -> Select[Any]:
    """The lookup query, cached: building it takes as long as running it."""
    return select(key, table.c.number).where(key.in_(bindparam("values", expanding=True)))
