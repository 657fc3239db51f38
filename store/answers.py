"""Answers of readers, kept by a hash of all they depend on, for all processes that share the
database.

Invariant: at most `room` answers are there after each `put`; the oldest go.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import delete, func, select

from hopscope.store.database import Database
from hopscope.store.interning import chunks, insert
from hopscope.store.schema import answers

ROOM = 200_000


class Answers:
    """An answer cache, as the port has it. Threads may share one."""

    def __init__(self, database: Database, *, room: int = ROOM) -> None:
        self._database = database
        self._room = room

    def get(self, keys: Sequence[str]) -> dict[str, str]:
        """The answers that are there, by key.

        Raises:
            StoreError: the database failed.
        """
        found: dict[str, str] = {}
        with self._database.reading() as connection:
            for chunk in chunks(dict.fromkeys(keys)):
                query = select(answers.c.hash, answers.c.answer).where(answers.c.hash.in_(chunk))
                found.update(tuple(row) for row in connection.execute(query))
        return found

    def put(self, found: Mapping[str, str]) -> None:
        """Keep answers; one that is there already stays.

        Raises:
            StoreError: the database failed.
        """
        if not found:
            return
        rows = [{"hash": key, "answer": found[key]} for key in sorted(found)]
        with self._database.writing() as connection:
            connection.execute(insert(connection, answers).on_conflict_do_nothing(), rows)
            newest = connection.execute(select(func.max(answers.c.number))).scalar_one()
            connection.execute(delete(answers).where(answers.c.number <= newest - self._room))
