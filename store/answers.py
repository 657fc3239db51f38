"""A cache of model answers under a hash of all that they depend on, shared by all processes that
use the database.

Invariant: each `put` leaves at most `room` answers; the oldest are deleted.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Table, delete, func, select

from hopscope.store.database.database import Database
from hopscope.store.database.schema import answers, entailments
from hopscope.store.runs.interning import chunks, insert

ROOM = 200_000
"""Answers of readers kept: some kilobytes each."""
PAIRS = 1_000_000
"""Answers of entailment models kept: some two hundred bytes each."""


class Answers:
    """An implementation of the answer cache port. Threads may share one."""

    def __init__(self, database: Database, *, table: Table = answers, room: int = ROOM) -> None:
        self._database = database
        self._table = table
        self._room = room

    def get(self, keys: Sequence[str]) -> dict[str, str]:
        """The known answers, by key.

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

    def put(self, new: Mapping[str, str]) -> None:
        """Store answers; existing ones stay.

        Raises:
            StoreError: the database failed.
        """
        if not new:
            return
        kept = self._table
        rows = [{"hash": key, "answer": new[key]} for key in sorted(new)]
        with self._database.writing() as connection:
            connection.execute(insert(connection, kept).on_conflict_do_nothing(), rows)
            newest = connection.execute(select(func.max(kept.c.number))).scalar_one()
            connection.execute(delete(kept).where(kept.c.number <= newest - self._room))


def of_pairs(database: Database) -> Answers:
    """The cache of entailment probabilities."""
    return Answers(database, table=entailments, room=PAIRS)
