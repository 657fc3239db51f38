"""The database of runs with their credits."""

from threading import Lock
from typing import Protocol

from hopscope.api import stored
from hopscope.api.measured_run import MeasuredRun
from hopscope.runtime.types import Run
from hopscope.store.database.database import Database
from hopscope.store.store import Store as RecordStore


class Background(Protocol):
    """Measures some of the recorded runs of a store while the program goes on."""

    measured: int
    """Runs that were measured."""
    dropped: int
    """Runs that were chosen and found the queue full."""
    failed: int
    """Runs that could not be measured; the log tells why."""

    @property
    def waiting(self) -> int:
        """Runs in the queue."""
        ...

    def offer(self, run: Run) -> bool:
        """Whether a stored run will be measured. Never waits."""
        ...

    def flush(self) -> None:
        """Wait until all runs in the queue are measured."""
        ...

    def close(self) -> None:
        """Measure what is in the queue, and end."""
        ...


class Store(RecordStore):
    """Runs, credits and experiments in a database. Threads may share one; processes each open their
    own.

        with Store.open("runs.db") as store:
            for summary in store.runs(limit=10):
                print(summary.question, summary.answer)
            store.run("last").show()

    `runs` lists, `run` gives a run with its credits, `load` and `credits` the records alone.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.lock = Lock()
        self.background: dict[object, Background] = {}
        """What measures in the background, by its settings."""

    def close(self) -> None:
        """Close the database, when the runs that wait to be measured are measured."""
        for each in self.background.values():
            each.close()
        super().close()

    def run(self, run: str = stored.LAST) -> MeasuredRun:
        """The run of this id, or of the only id that begins so, or the last.

        Raises:
            UsageError: there is none, or more than one.
        """
        found = stored.find(self, run)
        return MeasuredRun(
            found, self.credits(found.id), self.appraisals(found.id), self.games(found.id)
        )
