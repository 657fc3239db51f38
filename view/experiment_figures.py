"""The pictures of one or more stored experiments, by name."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from hopscope.lab import comparison
from hopscope.lab.answer_metric import answer_metric
from hopscope.lab.table_forms.table import Table
from hopscope.runtime.errors import UsageError
from hopscope.store.experiments.records import Item
from hopscope.store.experiments.result_rows import ResultRow
from hopscope.store.store import Store
from hopscope.tracing.error_decomposition.errors import AnswerErrors, profile
from hopscope.tracing.error_decomposition.report import error_report
from hopscope.tracing.reports.displays import display
from hopscope.view.pictures import failures, frontier, searches, trust, workflows
from hopscope.view.pictures.specification import Spec

JUDGED = 500
"""The most runs whose errors are decomposed, spread evenly over the experiment."""
ERRORS = ("retriever", "extraction", "hallucination")
GOLD = "seper"


class ExperimentRecords:
    """The records of experiments: those that `hopscope compare --json` prints."""

    def __init__(self, store: Store, *names: str, resamples: int = 2000) -> None:
        """
        Raises:
            UsageError: there is no such experiment.
        """
        self._store, self.names, self._resamples = store, names, resamples
        for name in names:
            store.experiments.find(name)

    @property
    def name(self) -> str:
        return " and ".join(self.names)

    @cached_property
    def _tables(self) -> Sequence[Table]:
        tables = ("overview", "differences", "credit_by_step")
        found = comparison.compare(
            *self.names, store=self._store, tables=tables, resamples=self._resamples
        )
        return found.tables

    def full_table(self, name: str) -> Table:
        """A table: `overview`, `differences` or `credit_by_step`.

        Raises:
            UsageError: there is no such table, or nothing is done yet.
        """
        found = next((table for table in self._tables if table.name == name), None)
        if found is None:
            known = ", ".join(table.name for table in self._tables)
            raise UsageError(f"no table {name!r}: choose from {known}")
        return found

    def table(self, name: str) -> dict[str, Any]:
        """The same as plain values."""
        return self.full_table(name).model_dump(mode="json")

    @cached_property
    def rows(self) -> list[ResultRow]:
        """The finished items."""
        return [row for name in self.names for row in self._store.experiments.result_rows(name)]

    def totals(self, free: str) -> list[dict[str, Any]]:
        """The totals of the runs that a label-free meter and SePer both measured."""
        return [
            {"run": row.run_id, "system": row.arm, "free": label_free, "gold": gold}
            for row in self.rows
            if isinstance(label_free := row.utility(free).delta, float)
            and isinstance(gold := row.utility(GOLD).delta, float)
        ]

    @cached_property
    def label_free(self) -> str:
        """The label-free meter of the experiment: GroGU, unless only another was measured."""
        measured = dict.fromkeys(meter for row in self.rows for meter in row.utilities)
        found = [meter for meter in ("grogu", *measured) if meter in measured]
        return next((meter for meter in found if not display(meter).gold), "grogu")

    @cached_property
    def failures(self) -> list[dict[str, Any]]:
        """Shares of errors by step and hops, as `hopscope errors` defines them."""
        items = [
            item
            for name in self.names
            for item in self._store.experiments.items(name)
            if item.outcome
        ]
        every = max(1, -(-len(items) // JUDGED))
        return _failures(self._store, items[::every])


def _failures(store: Store, items: Sequence[Item]) -> list[dict[str, Any]]:
    hops = {item.outcome.run_id: item.entry.hops for item in items if item.outcome}
    metric = answer_metric("exact_match", reader="tiny", entailment="lexical")
    found = error_report([store.load(run) for run in hops], metric)
    groups: dict[tuple[str, int], list[AnswerErrors]] = {}
    for run in found.runs:
        for located in run.errors:
            if located.errors is not None:
                known = hops[run.id]
                place = (
                    "unknown" if known is None else str(known),
                    -1 if located.step is None else located.step,
                )
                groups.setdefault(place, []).append(located.errors)
    return [
        {
            "error": error,
            "hops": of_hops,
            "order": step,
            "step": "run" if step < 0 else str(step),
            "share": share.value,
            "low": share.low,
            "high": share.high,
            "answers": share.n,
        }
        for (of_hops, step), errors in sorted(groups.items())
        for error, share in profile(errors).items()
        if error in ERRORS
    ]


def _workflows(records: ExperimentRecords) -> Spec:
    return workflows.spec(records.table("overview"), experiment=records.name)


def _searches(records: ExperimentRecords) -> Spec:
    return searches.spec(records.table("credit_by_step"), experiment=records.name)


def _frontier(records: ExperimentRecords) -> Spec:
    return frontier.spec(records.table("overview"), experiment=records.name)


def _trust(records: ExperimentRecords) -> Spec:
    free = records.label_free
    return trust.spec(records.totals(free), experiment=records.name, free=free)


def _failures_spec(records: ExperimentRecords) -> Spec:
    return failures.spec(records.failures, experiment=records.name)


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
