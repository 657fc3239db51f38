"""Answers of models, kept by a hash of all they depend on, for all processes that share the
database.

Invariant: at most `room` answers are there after each `put`; the oldest go.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Table, delete, func, select

from hopscope.store.database import Database
from hopscope.store.interning import chunks, insert
from hopscope.store.schema import answers, entailments

ROOM = 200_000
"""What readers said: some kilobytes each."""
PAIRS = 1_000_000
"""What entailment models said of a pair: some two hundred bytes each."""


class Answers:
    """An answer cache, as the port has it. Threads may share one."""

    def __init__(self, database: Database, *, table: Table = answers, room: int = ROOM) -> None:
        self._database = database
        self._table = table
        self._room = room

    def get(self, keys: Sequence[str]) -> dict[str, str]:
        """The answers that are there, by key.

        Raises:
            StoreError: the database failed.
        """
        kept = self._table.c
        found: dict[str, str] = {}
        with self._database.reading() as connection:
            for chunk in chunks(dict.fromkeys(keys)):
                query = select(kept.hash, kept.answer).where(kept.hash.in_(chunk))
                found.update(tuple(row) for row in connection.execute(query))
        return found

    def put(self, found: Mapping[str, str]) -> None:
        """Keep answers; one that is there already stays.

        Raises:
            StoreError: the database failed.
        """
        if not found:
            return
        kept = self._table
        rows = [{"hash": key, "answer": found[key]} for key in sorted(found)]
        with self._database.writing() as connection:
            connection.execute(insert(connection, kept).on_conflict_do_nothing(), rows)
            newest = connection.execute(select(func.max(kept.c.number))).scalar_one()
            connection.execute(delete(kept).where(kept.c.number <= newest - self._room))


def of_pairs(database: Database) -> Answers:
    """Where the probabilities of entailment are kept."""
    return Answers(database, table=entailments, room=PAIRS)
