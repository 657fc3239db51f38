"""The durable record of runs and their credits.

Invariant: `load(save(run))` equals `run`, whatever its status, and saving it again changes
nothing.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sqlalchemy import Connection, select
from sqlalchemy.sql.functions import count

from hopscope.runtime.errors import MissingRunError, StoreError, UsageError
from hopscope.runtime.types import Appraisal, Credit, GameValues, Run, RunStatus
from hopscope.store.database.database import Database
from hopscope.store.database.location import default, resolve
from hopscope.store.database.location import default_url as default_url
from hopscope.store.database.migrate import HEAD as HEAD
from hopscope.store.database.migrate import check_current, require, upgrade
from hopscope.store.database.schema import runs
from hopscope.store.runs.interning import chunks
from hopscope.store.runs.reading import read_appraisals, read_credits, read_run, read_runs
from hopscope.store.runs.summary import RunSummary, read_summaries

if TYPE_CHECKING:
    from hopscope.store.answers import Answers
    from hopscope.store.experiments.experiments import Experiments
    from hopscope.store.labels import Labels
    from hopscope.store.pushes import Pushes
    from hopscope.store.runs.browsing import RunPage, RunQuery
    from hopscope.store.verify import Fault

BATCH = 100
"""Runs in one transaction of `save_all`."""


class Store:
    """Runs in a database. Threads may share one; processes each open their own.

    Modules that only some commands need are imported lazily, so that `ls` and `show` start quickly.

    with Store.open("runs.db") as store:
        store.save(run)
        store.save_credits(credits)
        assert store.load(run.id[:6]) == run
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.found: str | None = HEAD
        """The revision of the tables before they were upgraded on opening; None if there were
        none."""

    @classmethod
    def open(
        cls,
        location: str | Path | None = None,
        *,
        create: bool = True,
        reading: bool = False,
    ) -> Self:
        """Open a database, and upgrade it if necessary.

        Args:
            location: a path, a SQLite or PostgreSQL URL, or None for `HOPSCOPE_DB` or else the
                default of `hopscope.store.database.location`.
            create: whether to create a missing database.
            reading: only read, so that a SQLite file on a read-only disk is accepted.

        Raises:
            MissingDatabaseError: there is none and `create` is False.
            UsageError: the URL cannot be read, or names a file in a folder that does not exist, a
                folder, another file or another program's database.
            StoreError: the database cannot be used; the message says why and what to do.
            MissingExtraError: a PostgreSQL URL without the extra `postgres`.
        """
        url = resolve(location)
        database = Database(url, reading=reading)
        try:
            if not create:
                require(database)
            store = cls(database)
            if database.read_only:
                check_current(database)
            else:
                database.prepare(make_folder=url == default())
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
        from hopscope.store.experiments.experiments import Experiments

        return Experiments(self._database)

    @cached_property
    def labels(self) -> "Labels":
        """What people said about runs."""
        from hopscope.store.labels import Labels

        return Labels(self._database)

    def pushes(self, service: str, target: str) -> "Pushes":
        """What was sent to a service.

        Args:
            service: its name.
            target: a hash of its name, address and project.
        """
        from hopscope.store.pushes import Pushes

        return Pushes(self._database, service, target)

    @cached_property
    def answers(self) -> "Answers":
        """The cache of readers' answers."""
        from hopscope.store.answers import Answers

        return Answers(self._database)

    @cached_property
    def entailments(self) -> "Answers":
        """The cache of entailment models' answers on pairs of texts."""
        from hopscope.store.answers import of_pairs

        return of_pairs(self._database)

    def save(self, run: Run) -> None:
        """Store a run, finished or not. It replaces a different run of the same id and deletes its
        credits."""
        self.save_all([run])

    def save_all(self, found: Iterable[Run]) -> None:
        """Store many runs quickly: `BATCH` runs in a transaction, as they arrive. If a transaction
        or the source of runs fails, the runs of earlier transactions stay stored.
        """
        from hopscope.store.runs.interning import chunks
        from hopscope.store.runs.writing import write_runs

        for batch in chunks(found, BATCH):
            with self._database.writing() as connection:
                write_runs(connection, batch)

    def save_credits(
        self,
        credits: Iterable[Credit],
        appraisals: Iterable[Appraisal] = (),
        games: Iterable[GameValues] = (),
    ) -> None:
        """Store credits, replacing those with the same run, step, passage, rule, meter and
        provenance, with the times and costs in `appraisals` and the coalition values in `games`.

        Raises:
            StoreError: a credit's run has not been saved; then nothing is stored.
        """
        from hopscope.store.runs.games import write_games
        from hopscope.store.runs.interning import chunks
        from hopscope.store.runs.writing import write_measured

        new, measured, played = list(credits), list(appraisals), list(games)
        wanted = sorted(
            {c.run_id for c in new} | {a.run_id for a in measured} | {g.run_id for g in played}
        )
        with self._database.writing() as connection:
            numbers: dict[str, int] = {}
            for chunk in chunks(wanted):
                query = select(runs.c.id, runs.c.number).where(runs.c.id.in_(chunk))
                numbers.update(tuple(row) for row in connection.execute(query))
            for run_id in wanted:
                if run_id not in numbers:
                    raise StoreError(f"credits for run {run_id}, which is not saved: save it first")
            write_measured(connection, numbers, new, measured)
            write_games(connection, numbers, played)

    def load(self, run_id: str) -> Run:
        """The run with this id or unique id prefix.

        Raises:
            UsageError: there is none, or more than one.
        """
        with self._database.reading() as connection:
            return read_run(connection, self._find(connection, run_id))

    def load_all(self, run_ids: Iterable[str]) -> Iterator[Run]:
        """The runs with exactly these ids, in their order, a hundred at a time: in a third of the
        time of `load` for each.

        Raises:
            UsageError: there is no run of an id.
        """
        for chunk in chunks(run_ids, 100):
            query = select(runs.c.id, runs.c.number).where(runs.c.id.in_(chunk))
            with self._database.reading() as connection:
                known = dict(tuple(row) for row in connection.execute(query))
                for run_id in chunk:
                    if run_id not in known:
                        raise MissingRunError(f"no run {run_id!r} in {self.name}")
                found = read_runs(connection, [known[run_id] for run_id in chunk])
            yield from found

    def latest(self) -> Run:
        """The run with the latest start.

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
        """The credits of a run, given as for `load`; those measured last come last, within them
        those of the whole run first, then by step.

        Raises:
            UsageError: as `load`.
        """
        with self._database.reading() as connection:
            return read_credits(connection, self._find(connection, run_id))

    def appraisals(self, run_id: str) -> list[Appraisal]:
        """Times and costs of measuring a run, given as for `load`, the latest last.

        Raises:
            UsageError: as `load`.
        """
        with self._database.reading() as connection:
            return read_appraisals(connection, self._find(connection, run_id))

    def games(self, run_id: str) -> list[GameValues]:
        """The coalition values of a run, given as for `load`, by meter, settings and players.

        Raises:
            UsageError: as `load`.
        """
        from hopscope.store.runs.games import read_games

        with self._database.reading() as connection:
            return read_games(connection, self._find(connection, run_id))

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

    def page(self, query: "RunQuery") -> "RunPage":
        """A page of the list of runs, filtered and ordered in SQL."""
        from hopscope.store.runs.browsing import read_page

        with self._database.reading() as connection:
            return read_page(connection, query)

    def workflows(self) -> list[str]:
        """The workflows of all runs, by name."""
        from hopscope.store.runs.browsing import read_workflows

        with self._database.reading() as connection:
            return read_workflows(connection)

    def ids(self) -> list[str]:
        """The ids of all runs, oldest first."""
        with self._database.reading() as connection:
            query = select(runs.c.id).order_by(runs.c.started, runs.c.number)
            return list(connection.execute(query).scalars())

    def tracing(self, traces: Iterable[str]) -> dict[str, int]:
        """How many runs were made in each of these traces, by the trace's id."""
        found: dict[str, int] = {}
        with self._database.reading() as connection:
            for chunk in chunks(dict.fromkeys(traces)):
                query = select(runs.c.trace_id, count()).where(runs.c.trace_id.in_(chunk))
                found.update(
                    {row[0]: row[1] for row in connection.execute(query.group_by(runs.c.trace_id))}
                )
        return found

    def verify(self) -> "list[Fault]":
        """All rows that changed since they were written, found by computing hashes and reading."""
        return list(self.faults())

    def faults(self) -> "Iterator[Fault]":
        """The faults of `verify`, one at a time."""
        from hopscope.store.verify import find_faults

        with self._database.reading() as connection:
            yield from find_faults(connection)

    def unsealed(self) -> int:
        """Number of runs older than m011; `verify` checks only that they can be read."""
        from hopscope.store.verify import count_unsealed

        with self._database.reading() as connection:
            return count_unsealed(connection)

    def size(self) -> int:
        """Bytes that the database takes."""
        from hopscope.store.database.maintenance import read_size

        with self._database.reading() as connection:
            return read_size(connection)

    def vacuum(self) -> None:
        """Free unused space of the database."""
        from hopscope.store.database.maintenance import vacuum

        vacuum(self._database)

    def _find(self, connection: Connection, run_id: str) -> int:
        end = run_id + "\U0010ffff"
        query = select(runs.c.id, runs.c.number).where(runs.c.id >= run_id, runs.c.id <= end)
        found = connection.execute(query.order_by(runs.c.id).limit(6)).all() if run_id else []
        if not found:
            raise MissingRunError(f"no run {run_id!r} in {self.name}: `hopscope ls` lists the runs")
        if len(found) > 1 and found[0].id != run_id:
            ids = ", ".join(row.id for row in found[:5]) + (", …" if len(found) > 5 else "")
            raise UsageError(f"several runs begin with {run_id!r}: {ids}; give more of the id")
        return int(found[0].number)
