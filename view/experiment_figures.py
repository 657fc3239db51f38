"""The pictures of one or more stored experiments, by name."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from hopscope.lab import comparison
from hopscope.lab.experiments.columnar import ColumnarResults
from hopscope.lab.table_forms.table import Table
from hopscope.lab.tables import credit_by_step, differences, overview
from hopscope.runtime.errors import UsageError
from hopscope.store.store import Store
from hopscope.tracing.reports.displays import display
from hopscope.view import failed_runs
from hopscope.view.failed_runs import FailedRun
from hopscope.view.pictures import failures, frontier, searches, trust, workflows
from hopscope.view.pictures.specification import Spec, spread
from hopscope.view.pictures.trust import Totals

JUDGED = 500
"""The most runs whose errors are decomposed, spread evenly over the experiment."""
GOLD = "seper"


class ExperimentRecords:
    """The records of experiments: those that `hopscope compare --json` prints."""

    def __init__(self, store: Store, *names: str, resamples: int = 2000) -> None:
        """
        Raises:
            UsageError: there is no such experiment.
        """
        self._store, self.names, self._resamples = store, names, resamples
        self._tables: dict[str, Table] = {}
        self._figures: dict[str, Spec] = {}
        for name in names:
            store.experiments.find(name)

    @property
    def name(self) -> str:
        return " and ".join(self.names)

    @cached_property
    def columns(self) -> ColumnarResults:
        """The finished items.

        Raises:
            UsageError: nothing is done yet.
        """
        return comparison.columns(*self.names, store=self._store, resamples=self._resamples)

    def figure(self, name: str) -> Spec:
        """The picture of that name in `FIGURES`, made once.

        Raises:
            UsageError: nothing of it was measured.
        """
        if name not in self._figures:
            self._figures[name] = FIGURES[name](self)
        return self._figures[name]

    def full_table(self, name: str) -> Table:
        """A table: `overview`, `differences` or `credit_by_step`; also `credit_by_step_` with a
        meter that is not the leading one.

        Raises:
            UsageError: there is no such table, or nothing is done yet.
        """
        if name not in self._tables:
            self._tables[name] = self._built(name)
        return self._tables[name]

    def table(self, name: str) -> dict[str, Any]:
        """The same as plain values."""
        return self.full_table(name).model_dump(mode="json")

    def _built(self, name: str) -> Table:
        if name == "overview":
            return overview.build(self.columns)[0]
        if name == "differences":
            return differences.build(self.columns)[0]
        found = self.columns
        shared = {
            credit_by_step.named(found, meter): meter
            for meter in found.meters
            if meter == found.leading or display(meter).baseline
        }
        made = found.retrievals(shared[name]) if name in shared else None
        if made is None or not (made.shares or shared[name] == found.leading):
            known = ", ".join(["overview", "differences", *shared])
            raise UsageError(f"no table {name!r}: choose from {known}")
        return credit_by_step.of_columns(found, shared[name], made)

    def totals(self, free: str) -> Totals:
        """The totals of the runs that a label-free meter and SePer both measured."""
        found = self.columns
        values = {name: found.delta(name) for name in (free, GOLD)}
        items = np.flatnonzero(np.isfinite(values[free]) & np.isfinite(values[GOLD]))

        def marks(places: Sequence[int]) -> list[tuple[str, str]]:
            own = items[list(places)]
            ids = self._store.experiments.run_ids(found.run[own].tolist())
            return list(zip(ids, found.labels(own), strict=True))

        return Totals(values[free][items], values[GOLD][items], marks)

    @property
    def label_free(self) -> list[str]:
        """The label-free meters that measured the experiment, GroGU first; GroGU if none did."""
        measured = self.columns.measured_meters
        found = [meter for meter in measured if not display(meter).gold]
        return sorted(found, key=lambda meter: meter != "grogu") or ["grogu"]

    @cached_property
    def judged(self) -> list[FailedRun]:
        """Runs with their errors, as `hopscope errors` defines them; at most `JUDGED`."""
        found = self.columns
        answered = np.flatnonzero(found.run >= 0)
        items = answered[spread(len(answered), JUDGED)]
        ids = self._store.experiments.run_ids(found.run[items].tolist())
        return failed_runs.judged(self._store, dict(zip(ids, found.hops(items), strict=True)))


def _workflows(records: ExperimentRecords) -> Spec:
    return workflows.spec(records.table("overview"), experiment=records.name)


def _searches(records: ExperimentRecords) -> Spec:
    return searches.spec(records.table("credit_by_step"), experiment=records.name)


def _frontier(records: ExperimentRecords) -> Spec:
    return frontier.spec(records.table("overview"), experiment=records.name)


def _trust(records: ExperimentRecords) -> Spec:
    totals = {meter: records.totals(meter) for meter in records.label_free}
    return trust.spec(totals, experiment=records.name)


def _failures_spec(records: ExperimentRecords) -> Spec:
    made = failures.spec(failed_runs.shares(records.judged), experiment=records.name)
    runs = int((records.columns.run >= 0).sum())
    if runs > JUDGED:
        made["description"] += f" Of {JUDGED} of {runs:,} runs, spread evenly."
    return made


FIGURES: Mapping[str, Callable[[ExperimentRecords], Spec]] = {
    "workflows": _workflows,
    "searches": _searches,
    "frontier": _frontier,
    "trust": _trust,
    "failures": _failures_spec,
}


def records_of(store: Store, name: str) -> ExperimentRecords:
    """The records of an experiment.

    Raises:
        UsageError: there is none of that name; the message names those there are.
    """
    if store.experiments.known(name) is None:
        names = ", ".join(each.name for each in store.experiments.all()[:10]) or "none"
        raise UsageError(f"no experiment {name!r} in {store.name}: there are {names}")
    return ExperimentRecords(store, name)
