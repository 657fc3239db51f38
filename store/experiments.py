"""Experiments in the store: what was planned, what is done, what came of it.

To read, `Store.experiments` is all that is needed:

    with Store.open() as store:
        experiment = store.experiments.find("hotpot")           # its arms, settings, models
        items = store.experiments.items("hotpot")               # question x arm, with figures
        credits = store.experiments.credits("hotpot", passages=False)   # by run id
        for item in items:
            if item.outcome:
                totals = [c for c in credits[item.outcome.run_id] if c.rule == "total"]
                run = store.load(item.outcome.run_id)           # all of it, slow in bulk

The list methods take a fixed number of queries, however many items there are, and read no text
but questions and answers. Whoever works on an experiment sits down (`sit`), claims items, completes
each once, and leaves; see `store.experiment_writing` for what that keeps true.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from pydantic import JsonValue
from sqlalchemy import Connection, select

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Appraisal, Credit, Run, RunError
from hopscope.store import experiment_reading as reading
from hopscope.store import experiment_writing as writing
from hopscope.store.appraised import ORIGINAL, Appraised, chosen, read_appraised
from hopscope.store.database import Database
from hopscope.store.experiment_records import (
    Claimed,
    Entry,
    Experiment,
    Item,
    ItemStatus,
    Progress,
    Sitting,
)
from hopscope.store.figure_reading import read_figures, read_retrievals
from hopscope.store.figures import Figures, Retrieval
from hopscope.store.schema import experiments


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
            UsageError: there is none; the message lists those there are.
        """
        found = self.known(name)
        if found is None:
            raise self._unknown(name)
        return found

    def progress(self, name: str) -> Progress:
        """How many of its items are where.

        Raises:
            UsageError: as `find`.
        """
        with self._database.reading() as connection:
            return reading.read_progress(connection, self._number(connection, name))

    def items(self, name: str, *, status: ItemStatus | None = None) -> list[Item]:
        """All items, or those of one status, in the order of the plan. Each has its question with
        golds, its arm's label, its status and error and, once it is done, the figures of its run:
        answer, retrievals, usage, seconds. A row that failed may have no run; one that is not done
        has none.

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
        `store.appraised.chosen` chooses it. Runs that have none are missing.

        They are in the order of `Store.credits`, those measured last coming last, so that
        `tracing.report.chosen` chooses among them.

        Raises:
            UsageError: as `find`, or there is no such appraisal.
        """
        with self._database.reading() as connection:
            number = self._number(connection, name)
            shown = chosen(read_appraised(connection, number), appraisal) if appraisal else None
            return reading.read_item_credits(
                connection,
                number,
                meters=meters,
                rules=rules,
                passages=passages,
                provenance=shown and shown.number,
            )

    def appraised(self, name: str) -> list[Appraised]:
        """In which ways its whole runs were measured, the original one first.

        Raises:
            UsageError: as `find`.
        """
        with self._database.reading() as connection:
            return read_appraised(connection, self._number(connection, name))

    def figures(self, name: str, appraisal: str = ORIGINAL) -> list[Figures]:
        """What tables need of the items that are done, in the order of the plan: plain rows, for
        tens of thousands of items a second. Utilities are those of the appraisal that
        `store.appraised.chosen` chooses.

        Raises:
            UsageError: as `find`, or there is no such appraisal.
        """
        with self._database.reading() as connection:
            number = self._number(connection, name)
            shown = chosen(read_appraised(connection, number), appraisal)
            return read_figures(connection, number, name, shown and shown.number)

    def retrievals(self, name: str, appraisal: str = ORIGINAL) -> list[Retrieval]:
        """The retrievals of all its runs with their shares of SePer, as plain rows.

        Raises:
            UsageError: as `figures`.
        """
        with self._database.reading() as connection:
            number = self._number(connection, name)
            shown = chosen(read_appraised(connection, number), appraisal)
            return read_retrievals(connection, number, shown and shown.number)

    def appraisals(self, name: str) -> dict[str, list[Appraisal]]:
        """What measuring its runs cost, by the run's id, the latest last. Runs that were not
        measured are missing.

        Raises:
            UsageError: as `find`.
        """
        with self._database.reading() as connection:
            return reading.read_item_appraisals(connection, self._number(connection, name))

    def sittings(self, name: str) -> list[Sitting]:
        """When it was worked on, and by what versions and hardware, the first one first.

        Raises:
            UsageError: as `find`.
        """
        with self._database.reading() as connection:
            return reading.read_sittings(connection, self._number(connection, name))

    def add(self, experiment: Experiment, entries: Sequence[Entry]) -> None:
        """Plan every question by every arm. Of an experiment that is there, what it lacks is added
        at the end and the rest left as it is.

        Raises:
            UsageError: it was begun with another fingerprint, or an arm with other settings.
        """
        with self._database.writing() as connection:
            writing.add(connection, experiment, entries)

    def retry_failed(self, name: str) -> int:
        """Make failed items pending again; how many.

        Raises:
            UsageError: as `find`.
        """
        with self._database.writing() as connection:
            return writing.retry(connection, self._number(connection, name))

    def open_sittings(self, name: str) -> dict[int, str]:
        """Owners of the sittings that have not ended, by the sitting's number: some may be dead.

        Raises:
            UsageError: as `find`.
        """
        with self._database.reading() as connection:
            number = self._number(connection, name)
            return writing.open_sittings(connection, number)

    def sit(self, name: str, *, owner: str, environment: Mapping[str, JsonValue]) -> int:
        """Sit down to work on an experiment; the sitting's number.

        Raises:
            UsageError: as `find`.
        """
        with self._database.writing() as connection:
            number = self._number(connection, name)
            return writing.sit(connection, number, owner, dict(environment))

    def claim(self, sitting: int, limit: int = 1) -> list[Claimed]:
        """Up to `limit` items for this sitting alone, in the order of the plan; none are left when
        there are none. Items of sittings that ended, or gave no sign of life for 90 s, are free."""
        with self._database.writing() as connection:
            return writing.claim(connection, sitting, limit)

    def complete(
        self,
        sitting: int,
        claimed: Claimed,
        run: Run | None,
        *,
        credits: Sequence[Credit] = (),
        appraisals: Iterable[Appraisal] = (),
        error: RunError | None = None,
    ) -> bool:
        """Keep what became of an item: its run, credits and appraisals, or an error and as much of
        these as there is, all or nothing. False, with nothing kept, if the item is no longer this
        sitting's."""
        with self._database.writing() as connection:
            return writing.complete(
                connection,
                sitting,
                claimed.position,
                run=run,
                credits=credits,
                appraisals=appraisals,
                error=error,
            )

    def live(self, sitting: int) -> None:
        """Give a sign of life; `claim` and `complete` give one, too."""
        with self._database.writing() as connection:
            writing.sign_of_life(connection, sitting)

    def leave(self, sitting: int) -> None:
        """End a sitting, one's own or that of a process that is dead; what it was at is free."""
        with self._database.writing() as connection:
            writing.leave(connection, sitting)

    def _number(self, connection: Connection, name: str) -> int:
        query = select(experiments.c.number).where(experiments.c.name == name)
        number = connection.execute(query).scalar()
        if number is None:
            raise self._unknown(name)
        return int(number)

    def _unknown(self, name: str) -> UsageError:
        names = ", ".join(experiment.name for experiment in self.all()[:10])
        there = f"there are {names}" if names else "begin one with `hopscope eval`"
        return UsageError(f"no experiment {name!r} in {self._database.name}: {there}")
