"""The database of runs with their credits."""

from hopscope.api import stored
from hopscope.api.measured_run import MeasuredRun
from hopscope.store.store import Store as RecordStore


class Store(RecordStore):
    """Runs, credits and experiments in a database. Threads may share one; processes each open their
    own.

        with Store.open("runs.db") as store:
            for summary in store.runs(limit=10):
                print(summary.question, summary.answer)
            store.run("last").show()

    `runs` lists, `run` gives a run with its credits, `load` and `credits` the records alone.
    """

    def run(self, run: str = stored.LAST) -> MeasuredRun:
        """The run of this id, or of the only id that begins so, or the last.

        Raises:
            UsageError: there is none, or more than one.
        """
        found = stored.find(self, run)
        return MeasuredRun(
            found, self.credits(found.id), self.appraisals(found.id), self.games(found.id)
        )
