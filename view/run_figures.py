"""The pictures of a stored run, by name."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from hopscope.api import stored
from hopscope.api.credits import Credits
from hopscope.runtime.budget.prices import Prices
from hopscope.runtime.types import Appraisal, Credit, GameValues, Provenance, Run
from hopscope.store.store import Store
from hopscope.tracing.reports.appraised import selected_provenance
from hopscope.tracing.reports.records import RunReport
from hopscope.tracing.reports.report import report
from hopscope.tracing.what_if.answers import interaction_rows, recall, without_rows
from hopscope.tracing.what_if.recall import Recall
from hopscope.view.pictures import answers, belief, credit, synergy
from hopscope.view.pictures.answers import EMPTY
from hopscope.view.pictures.specification import Spec


class RunRecords:
    """The records of a stored run: those that `hopscope show --json` prints."""

    def __init__(
        self,
        run: Run,
        credits: list[Credit],
        appraisals: list[Appraisal],
        games: list[GameValues],
        *,
        prices: Prices | None = None,
    ) -> None:
        self.run = run
        self._credits, self._appraisals, self._games = credits, appraisals, games
        self._prices = prices

    @classmethod
    def load(cls, store: Store, run: str) -> "RunRecords":
        """The run of an id or its beginning, or the `last`.

        Raises:
            UsageError: there is none, or several.
        """
        found = stored.find(store, run)
        credits, appraisals = store.credits(found.id), store.appraisals(found.id)
        return cls(found, credits, appraisals, store.games(found.id))

    @cached_property
    def full_report(self) -> RunReport:
        """The report of the run with the credit of each step."""
        return report(
            self.run, self._credits, self._appraisals, prices=self._prices, games=self._games
        )

    @cached_property
    def report(self) -> dict[str, Any]:
        """The same as plain values."""
        return self.full_report.model_dump(mode="json")

    @cached_property
    def credits(self) -> list[dict[str, Any]]:
        """The credits of the appraisal that is shown, one row each."""
        shown = [each for each in self._credits if each.provenance == self.provenance]
        return Credits(self.run, shown).to_dicts()

    @cached_property
    def provenance(self) -> Provenance | None:
        """The settings of the appraisal that is shown; None if the run was not measured."""
        return selected_provenance(self._credits, None)

    def interactions(self) -> list[dict[str, Any]]:
        """The interactions of the run's steps; none where no coalitions are stored."""
        if not self._games:
            return []
        return [row.model_dump(mode="json") for row in interaction_rows(self._recall, "steps")]

    def without(self, names: list[str]) -> list[dict[str, Any]]:
        """Each meter's value without these steps and passages, from stored coalition values.

        Raises:
            UsageError: the run has no such part, or no stored values.
        """
        return [row.model_dump(mode="json") for row in without_rows(self._recall, names)]

    @property
    def recalls(self) -> bool:
        """Whether coalition values are stored, so that parts can be switched off."""
        return bool(self._games)

    @cached_property
    def _recall(self) -> Recall:
        return recall(self.run, self.provenance, self._games)


def _belief(records: RunRecords) -> Spec:
    return belief.spec(records.report)


def _credit(records: RunRecords) -> Spec:
    return credit.spec(records.credits, run=records.run.id)


def _synergy(records: RunRecords) -> Spec:
    return synergy.spec(records.interactions(), run=records.run.id)


def _answers(records: RunRecords) -> Spec:
    names = {step.index: f"{step.index} {step.name}" for step in records.run.steps}
    rows = [
        {
            "order": order,
            "step": names.get(-1 if context.step is None else context.step, "closed book"),
            "answer": group.answer or EMPTY,
            "mass": group.mass,
            "gold": group.right,
        }
        for order, context in enumerate(records.full_report.contexts)
        for group in context.groups or ()
    ]
    reasons = (each.groups_reason for each in records.full_report.contexts)
    reason = next(filter(None, reasons), "the run was not measured")
    return answers.spec(rows, question=records.run.question.text, reason=reason)


FIGURES: Mapping[str, Callable[[RunRecords], Spec]] = {
    "belief": _belief,
    "credit": _credit,
    "synergy": _synergy,
    "answers": _answers,
}
