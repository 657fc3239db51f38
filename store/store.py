"""The durable record of runs and what their steps were worth.

Invariant: `load(save(run))` equals `run`, whatever its status, and saving it again changes
nothing.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sqlalchemy import Connection, select

from hopscope.runtime.errors import StoreError, UsageError
from hopscope.runtime.types import Appraisal, Credit, Run, RunStatus
from hopscope.store.database import Database
from hopscope.store.location import default_url as default_url
from hopscope.store.location import resolve
from hopscope.store.migrate import HEAD as HEAD
from hopscope.store.migrate import check_current, require, upgrade
from hopscope.store.reading import read_appraisals, read_credits, read_run
from hopscope.store.schema import runs
from hopscope.store.summary import RunSummary, read_summaries

if TYPE_CHECKING:
    from hopscope.store.answers import Answers
    from hopscope.store.experiments import Experiments
    from hopscope.store.verify import Fault

BATCH = 100
"""Runs in one transaction of `save_all`."""


class Store:
    """Runs in a database. Threads may share one; processes each open their own.

    What only some commands need is imported when they do, so that `ls` and `show` start quickly.

    with Store.open("runs.db") as store:
        store.save(run)
        store.save_credits(credits)
        assert store.load(run.id[:6]) == run
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.found: str | None = HEAD
        """The revision that the tables were at when the store was opened, before they were brought
        up to date; None where there were none."""

    @classmethod
    def open(
        cls,
        location: str | Path | None = None,
        *,
        create: bool = True,
        reading: bool = False,
    ) -> Self:
        """Open a database, brought up to date where necessary.

        Args:
            location: a path, a SQLite or PostgreSQL URL, or None for `HOPSCOPE_DB` or else the
                default of `hopscope.store.location`.
            create: whether to make one where there is none.
            reading: nothing will be written, so that a SQLite file on a read-only disk will do.

        Raises:
            NothingKept: there is none and none is to be made.
            UsageError: the URL cannot be read.
            StoreError: the database cannot be used; the message says why and what to do.
            MissingExtra: a PostgreSQL URL without the extra `postgres`.
        """
        database = Database(resolve(location), reading=reading)
        try:
            if not create:
                require(database)
            store = cls(database)
            if database.read_only:
                check_current(database)
            else:
                database.prepare()
                store.found = upgrade(database)
        except BaseException:
            database.close()
            raise
        return store

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The database's file or URL, without password."""
        return self._database.name

    @cached_property
    def experiments(self) -> "Experiments":
        """Runs of whole datasets."""
        from hopscope.store.experiments import Experiments

        return Experiments(self._database)

    @cached_property
    def answers(self) -> "Answers":
        """What readers said, for readers that ask once."""
        from hopscope.store.answers import Answers

        return Answers(self._database)

    @cached_property
    def entailments(self) -> "Answers":
        """Likewise what entailment models said of pairs of texts."""
        from hopscope.store.answers import of_pairs

        return of_pairs(self._database)

    def save(self, run: Run) -> None:
        """Keep a run, finished or not. A different run of the same id is replaced and loses its
        credits."""
        self.save_all([run])

    def save_all(self, found: Iterable[Run]) -> None:
        """Keep runs, many at a time, which is far quicker: `BATCH` in a transaction, as they come.
        Those of the transactions before stay if one fails, or the source of runs does.
        """
        from hopscope.store.interning import chunks
        from hopscope.store.writing import write_runs

        for batch in chunks(found, BATCH):
            with self._database.writing() as connection:
                write_runs(connection, batch)

    def save_credits(self, credits: Iterable[Credit], appraisals: Iterable[Appraisal] = ()) -> None:
        """Keep credits, in place of those with the same run, step, passage, rule, meter and
        provenance; with when they were measured, if that is told, and what it cost.

        Raises:
            StoreError: a credit's run has not been saved; then none is kept.
        """
        from hopscope.store.interning import chunks
        from hopscope.store.writing import write_appraisal, write_credits

        found, told = list(credits), list(appraisals)
        wanted = sorted({*(c.run_id for c in found), *(a.run_id for a in told)})
        with self._database.writing() as connection:
            numbers: dict[str, int] = {}
            for chunk in chunks(wanted):
                query = select(runs.c.id, runs.c.number).where(runs.c.id.in_(chunk))
                numbers.update(tuple(row) for row in connection.execute(query))
            for run_id in wanted:
                if run_id not in numbers:
                    raise StoreError(f"credits for run {run_id}, which is not saved: save it first")
            write_credits(connection, numbers, found)
            for appraisal in told:
                write_appraisal(connection, numbers[appraisal.run_id], appraisal)

    def load(self, run_id: str) -> Run:
        """The run of this id, or of the only id that begins so.

        Raises:
            UsageError: there is none, or more than one.
        """
        with self._database.reading() as connection:
            return read_run(connection, self._find(connection, run_id))

    def latest(self) -> Run:
        """The run that was started last.

        Raises:
            UsageError: there are no runs.
        """
        query = select(runs.c.number).order_by(runs.c.started.desc(), runs.c.number.desc()).limit(1)
        with self._database.reading() as connection:
            number = connection.execute(query).scalar()
            if number is None:
                raise UsageError(f"no runs in {self.name} yet: make one with `hopscope run`")
            return read_run(connection, number)

    def credits(self, run_id: str) -> list[Credit]:
        """The credits of a run, found as by `load`; those measured last come last, within them the
        whole run's first, then by step.

        Raises:
            UsageError: as `load`.
        """
        with self._database.reading() as connection:
            return read_credits(connection, self._find(connection, run_id))

    def appraisals(self, run_id: str) -> list[Appraisal]:
        """When a run, found as by `load`, was measured and what that cost, the latest last.

        Raises:
            UsageError: as `load`.
        """
        with self._database.reading() as connection:
            return read_appraisals(connection, self._find(connection, run_id))

    def runs(
        self,
        limit: int | None = 50,
        *,
        workflow: str | None = None,
        status: RunStatus | None = None,
    ) -> list[RunSummary]:
        """The newest runs first, of one workflow or status if given; None for all."""
        with self._database.reading() as connection:
            return read_summaries(connection, limit=limit, workflow=workflow, status=status)

    def ids(self) -> list[str]:
        """The ids of all runs, oldest first."""
        with self._database.reading() as connection:
            query = select(runs.c.id).order_by(runs.c.started, runs.c.number)
            return list(connection.execute(query).scalars())

    def verify(self) -> "list[Fault]":
        """What is not as it was written: content hashes are derived again, runs read."""
        return list(self.faults())

    def faults(self) -> "Iterator[Fault]":
        """What `verify` gives, as it is found."""
        from hopscope.store.verify import find_faults

        with self._database.reading() as connection:
            yield from find_faults(connection)

    def unsealed(self) -> int:
        """Runs of before m011, of which `verify` sees only whether they can be read."""
        from hopscope.store.verify import count_unsealed

        with self._database.reading() as connection:
            return count_unsealed(connection)

    def size(self) -> int:
        """Bytes that the database takes."""
        from hopscope.store.maintenance import read_size

        with self._database.reading() as connection:
            return read_size(connection)

    def vacuum(self) -> None:
        """Make the database as small as what it holds."""
        from hopscope.store.maintenance import vacuum

        vacuum(self._database)

    def _find(self, connection: Connection, run_id: str) -> int:
        end = run_id + "\U0010ffff"
        query = select(runs.c.id, runs.c.number).where(runs.c.id >= run_id, runs.c.id <= end)
        found = connection.execute(query.order_by(runs.c.id).limit(6)).all() if run_id else []
        if not found:
            raise UsageError(f"no run {run_id!r} in {self.name}: `hopscope ls` lists the runs")
        if len(found) > 1 and found[0].id != run_id:
            ids = ", ".join(row.id for row in found[:5]) + (", …" if len(found) > 5 else "")
            raise UsageError(f"several runs begin with {run_id!r}: {ids}; give more of the id")
        return int(found[0].number)
