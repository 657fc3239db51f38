"""Experiments in the store: their plans, progress and results.

Reading needs only `Store.experiments`:

    with Store.open() as store:
        experiment = store.experiments.find("hotpot")           # its arms, settings, models
        items = store.experiments.items("hotpot")               # question x arm, with outcomes
        credits = store.experiments.credits("hotpot", passages=False)   # by run id
        for item in items:
            if item.outcome:
                totals = [c for c in credits[item.outcome.run_id] if c.rule == "total"]
                run = store.load(item.outcome.run_id)           # all of it, slow in bulk

The list methods take a fixed number of queries, however many items there are, and read no text
but questions and answers. A process that works on an experiment begins a worker session
(`begin_session`), claims items, completes each once and ends the session; see
`store.experiments.writing` for the invariants.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import JsonValue
from sqlalchemy import Connection, select

from hopscope.runtime.errors import MissingExperimentError, UsageError
from hopscope.runtime.types import Appraisal, Credit, GameValues, Run, RunError, ThoughtEnd
from hopscope.store.database.database import Database
from hopscope.store.database.schema import experiments
from hopscope.store.experiments import reading as reading
from hopscope.store.experiments import writing as writing
from hopscope.store.experiments.appraisals import (
    ORIGINAL,
    ExperimentAppraisal,
    read_experiment_appraisals,
    select_appraisal,
)
from hopscope.store.experiments.reading_result_rows import read_result_rows, read_retrievals
from hopscope.store.experiments.records import (
    ClaimedItem,
    DatasetEntry,
    Experiment,
    Item,
    ItemStatus,
    Progress,
    Version,
    WorkerSession,
)
from hopscope.store.experiments.result_rows import ResultRow, Retrieval

if TYPE_CHECKING:
    from hopscope.store.experiments.importing import Kept
    from hopscope.store.experiments.result_columns import Places, ResultColumns, RetrievalColumns


class Experiments:
    """The experiments of a store; `Store.experiments`. Threads may share it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[Experiment]:
        """Every experiment, the newest first."""
        with self._database.reading() as connection:
            return reading.read_experiments(connection)

    def known(self, name: str) -> Experiment | None:
        """The experiment of exactly that name, if there is one."""
        with self._database.reading() as connection:
            return next(iter(reading.read_experiments(connection, name=name)), None)

    def find(self, name: str) -> Experiment:
        """The experiment of exactly that name.

        Raises:
            UsageError: there is none; the message lists the known experiments.
        """
        found = self.known(name)
        if found is None:
            raise self._unknown(name)
        return found

    def progress(self, name: str) -> Progress:
        """Number of its items by status.

        Raises:
            UsageError: as `find`.
        """
        with self._database.reading() as connection:
            return reading.read_progress(connection, self._number(connection, name))

    def version(self, name: str) -> Version:
        """Of its results: equal as long as they are the same.

        Raises:
            UsageError: as `find`.
        """
        with self._database.reading() as connection:
            return reading.read_version(connection, self._number(connection, name))

    def items(self, name: str, *, status: ItemStatus | None = None) -> list[Item]:
        """All items, or those of one status, in the order of the plan. Each has its question with
        golds, its arm's label, its status and error and, once it is done, the outcome of its run:
        answer, retrievals, usage, seconds. A failed item may have no run; a pending item has
        none.

        Raises:
            UsageError: as `find`.
        """
        with self._database.reading() as connection:
            number = self._number(connection, name)
            return reading.read_items(connection, number, status=status)

    def credits(
        self,
        name: str,
        *,
        meters: Collection[str] | None = None,
        rules: Collection[str] | None = None,
        passages: bool = True,
        appraisal: str | None = None,
    ) -> dict[str, list[Credit]]:
        """The credits of its runs by the run's id, of these meters and rules if given; without
        `passages` only those of whole steps and runs; of one appraisal only, if given, as
        `store.experiments.appraisals.select_appraisal` chooses it. Runs without credits are left
        out.

        The order is that of `Store.credits`: the last measured come last, as
        `tracing.reports.appraised.shown` expects.

        Raises:
            UsageError: as `find`, or there is no such appraisal.
        """
        with self._database.reading() as connection:
            number = self._number(connection, name)
            shown = self._appraisal(connection, number, appraisal) if appraisal else None
            return reading.read_item_credits(
                connection,
                number,
                meters=meters,
                rules=rules,
                passages=passages,
                provenance=shown,
            )

    def appraised(self, name: str) -> list[ExperimentAppraisal]:
        """The appraisals of its whole runs, the original one first.

        Raises:
            UsageError: as `find`.
        """
        with self._database.reading() as connection:
            return read_experiment_appraisals(connection, self._number(connection, name))

    def result_rows(self, name: str, appraisal: str = ORIGINAL) -> list[ResultRow]:
        """The finished items as plain rows for tables, in the order of the plan; reads tens of
        thousands of items a second. Utilities are those of the appraisal that
        `store.experiments.appraisals.select_appraisal` chooses.

        Raises:
            UsageError: as `find`, or there is no such appraisal.
        """
        with self._database.reading() as connection:
            number = self._number(connection, name)
            shown = self._appraisal(connection, number, appraisal)
            return read_result_rows(connection, number, name, shown)

    def retrievals(self, name: str, appraisal: str = ORIGINAL) -> list[Retrieval]:
        """The retrievals of all its runs with their shares by each meter, as plain rows.

        Raises:
            UsageError: as `result_rows`.
        """
        with self._database.reading() as connection:
            number = self._number(connection, name)
            shown = self._appraisal(connection, number, appraisal)
            return read_retrievals(connection, number, shown)

    def result_columns(self, name: str, provenance: int | None) -> "ResultColumns":
        """The finished items as columns of numbers, in the order of the plan; reads 100,000 in a
        second. Utilities are those of the provenance with this row number, which `appraised` tells.

        Raises:
            UsageError: as `find`.
        """
        from hopscope.store.experiments.reading_result_columns import read_result_columns

        with self._database.reading() as connection:
            number = self._number(connection, name)
            return read_result_columns(connection, number, name, provenance)

    def retrieval_columns(
        self, name: str, provenance: int | None, meter: str, runs: "Places"
    ) -> "RetrievalColumns":
        """The retrievals of the runs in `ResultColumns.run`, with the shares by one meter.

        Raises:
            UsageError: as `find`.
        """
        from hopscope.store.experiments.reading_result_columns import read_retrieval_columns

        with self._database.reading() as connection:
            number = self._number(connection, name)
            return read_retrieval_columns(connection, number, provenance, meter, runs)

    def run_ids(self, runs: Sequence[int]) -> list[str]:
        """The ids of runs by their row numbers, as in `ResultColumns.run`."""
        with self._database.reading() as connection:
            return reading.read_run_ids(connection, runs)

    def appraisals(self, name: str) -> dict[str, list[Appraisal]]:
        """The cost of measuring its runs, by run id, the latest last. Runs that were not measured
        are missing.

        Raises:
            UsageError: as `find`.
        """
        with self._database.reading() as connection:
            return reading.read_item_appraisals(connection, self._number(connection, name))

    def thoughts(self, name: str) -> dict[ThoughtEnd, int]:
        """Number of thoughts in the replies of its runs, by the way they ended.

        Raises:
            UsageError: as `find`.
        """
        with self._database.reading() as connection:
            return reading.read_thoughts(connection, self._number(connection, name))

    def worker_sessions(self, name: str) -> list[WorkerSession]:
        """Its worker sessions with times, versions and hardware, the first one first.

        Raises:
            UsageError: as `find`.
        """
        with self._database.reading() as connection:
            return reading.read_worker_sessions(connection, self._number(connection, name))

    def add(self, experiment: Experiment, entries: Sequence[DatasetEntry]) -> None:
        """Plan every question for every arm. If the experiment exists, missing items are added at
        the end and the others stay.

        Raises:
            UsageError: it has another fingerprint, or an arm has other settings.
        """
        with self._database.writing() as connection:
            writing.add(connection, experiment, entries)

    def begin_import(self, name: str) -> None:
        """Begin an experiment of imported runs, unless there is one of that name.

        Raises:
            UsageError: the name cannot be used, or a workflow made the experiment of that name.
        """
        from hopscope.store.experiments import importing, naming

        known = self.known(naming.named(name))
        if known is not None and not known.settings.get("imported"):
            raise UsageError(
                f"the experiment {name} in {self._database.name} holds runs that were made here: "
                "give imported ones another --name"
            )
        with self._database.writing() as connection:
            writing.begin(connection, importing.planned(name))

    def keep_imported(self, name: str, runs: Sequence[Run], *, label: str | None = None) -> "Kept":
        """Store imported runs in an experiment that `begin_import` has begun, in one transaction.

        Args:
            label: of their arm; by default the workflow's.

        Raises:
            UsageError: as `find`.
        """
        from hopscope.store.experiments import importing

        with self._database.writing() as connection:
            return importing.keep(connection, self._number(connection, name), runs, label)

    def retry_failed(self, name: str) -> int:
        """Make failed items pending again; returns their number.

        Raises:
            UsageError: as `find`.
        """
        with self._database.writing() as connection:
            return writing.retry(connection, self._number(connection, name))

    def open_sessions(self, name: str) -> dict[int, str]:
        """Owners of the sessions that have not ended, by session number; some may be dead.

        Raises:
            UsageError: as `find`.
        """
        with self._database.reading() as connection:
            number = self._number(connection, name)
            return writing.open_sessions(connection, number)

    def begin_session(self, name: str, *, owner: str, environment: Mapping[str, JsonValue]) -> int:
        """Begin a worker session on an experiment; returns its number.

        Raises:
            UsageError: as `find`.
        """
        with self._database.writing() as connection:
            number = self._number(connection, name)
            return writing.begin_session(connection, number, owner, dict(environment))

    def claim(self, session: int, limit: int = 1) -> list[ClaimedItem]:
        """Claim up to `limit` items for this session alone, in the order of the plan; an empty list
        when none are free. Items of sessions that ended, or were silent for 90 s, are free."""
        with self._database.writing() as connection:
            return writing.claim(connection, session, limit)

    def complete(
        self,
        session: int,
        claimed: ClaimedItem,
        run: Run | None,
        *,
        credits: Sequence[Credit] = (),
        appraisals: Iterable[Appraisal] = (),
        games: Iterable[GameValues] = (),
        error: RunError | None = None,
    ) -> bool:
        """Store the result of an item in one transaction: its run, credits, appraisals and
        coalition values, or an error with those that exist. False, with nothing stored, if the
        session no longer holds the item."""
        with self._database.writing() as connection:
            return writing.complete(
                connection,
                session,
                claimed.position,
                run=run,
                credits=credits,
                appraisals=appraisals,
                games=games,
                error=error,
            )

    def keep_alive(self, session: int) -> None:
        """Record that the session is alive; `claim` and `complete` do so, too."""
        with self._database.writing() as connection:
            writing.sign_of_life(connection, session)

    def end_session(self, session: int) -> None:
        """End a session, of this process or of a dead one; its unfinished items are free."""
        with self._database.writing() as connection:
            writing.end_session(connection, session)

    def _appraisal(self, connection: Connection, experiment: int, which: str) -> int | None:
        """Row number of the provenance of the appraisal to show."""
        found = select_appraisal(read_experiment_appraisals(connection, experiment), which)
        return found and found.number

    def _number(self, connection: Connection, name: str) -> int:
        query = select(experiments.c.number).where(experiments.c.name == name)
        number = connection.execute(query).scalar()
        if number is None:
            raise self._unknown(name)
        return int(number)

    def _unknown(self, name: str) -> MissingExperimentError:
        names = ", ".join(experiment.name for experiment in self.all()[:10])
        there = f"there are {names}" if names else "begin one with `hopscope eval`"
        return MissingExperimentError(f"no experiment {name!r} in {self._database.name}: {there}")
