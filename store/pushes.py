"""What was sent to services of traces, so that nothing is sent twice and failures are known."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import select

from hopscope.runtime.errors import StoreError
from hopscope.store.database.database import Database
from hopscope.store.database.schema import experiments, pushes, runs
from hopscope.store.runs.interning import chunks, insert


class Sent(NamedTuple):
    """Something that was sent, or that a service refused."""

    kind: str
    """trace, note, dataset, experiment, result or evaluation."""
    key: str
    """Hash of what it is."""
    content: str
    """Hash of what it says."""
    run_id: str | None = None
    experiment: str | None = None
    """The run or the experiment that it belongs to; it is forgotten with that."""
    remote: str = ""
    """Its id there."""
    reason: str | None = None
    """Why it failed; None if it did not."""


class Pushes:
    """The record of one target: a service at an address with a project."""

    def __init__(self, database: Database, service: str, target: str) -> None:
        self._database = database
        self._service = service
        self._target = target

    def known(self, kind: str, keys: Sequence[str]) -> dict[str, Sent]:
        """What was sent of this kind, by key; without run and experiment."""
        found = {}
        own = pushes.c
        with self._database.reading() as connection:
            for chunk in chunks(dict.fromkeys(keys)):
                query = select(own.key, own.content, own.remote, own.reason).where(
                    own.target == self._target, own.kind == kind, own.key.in_(chunk)
                )
                for key, content, remote, reason in connection.execute(query):
                    found[key] = Sent(kind, key, content, remote=remote, reason=reason)
        return found

    def record(self, sent: Sequence[Sent]) -> None:
        """Remember what was sent just now.

        Raises:
            StoreError: a run or experiment is not stored.
        """
        now = datetime.now(UTC)
        with self._database.writing() as connection:
            numbers = {
                table.name: {
                    id: number
                    for chunk in chunks(sorted({name for name in wanted if name is not None}))
                    for id, number in connection.execute(
                        select(column, table.c.number).where(column.in_(chunk))
                    )
                }
                for table, column, wanted in (
                    (runs, runs.c.id, [each.run_id for each in sent]),
                    (experiments, experiments.c.name, [each.experiment for each in sent]),
                )
            }
            for each in sent:
                values = {
                    "service": self._service,
                    "run": _number(numbers["runs"], each.run_id),
                    "experiment": _number(numbers["experiments"], each.experiment),
                    "content": each.content,
                    "remote": each.remote,
                    "pushed": now,
                    "reason": each.reason,
                }
                keys = {"target": self._target, "kind": each.kind, "key": each.key}
                statement = insert(connection, pushes).values(**keys, **values)
                connection.execute(
                    statement.on_conflict_do_update(index_elements=[*keys], set_=values)
                )


def _number(numbers: dict[str, int], name: str | None) -> int | None:
    if name is None:
        return None
    if name not in numbers:
        raise StoreError(f"{name} is no longer stored: it was deleted while it was pushed")
    return numbers[name]
