"""A run with the credit of its steps."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopscope.api.credits import Credits
from hopscope.runtime.types import (
    Appraisal,
    Credit,
    Passage,
    Question,
    Run,
    RunError,
    RunStatus,
    Step,
    StopReason,
    Usage,
)

if TYPE_CHECKING:
    from rich.console import Console

    from hopscope.tracing.reports.records import RunReport


class MeasuredRun:
    """One question through one workflow, and the worth of each retrieval.

    It never changes; threads may share it. A notebook shows it as its table.
    """

    def __init__(
        self,
        record: Run,
        credits: Iterable[Credit] = (),
        appraisals: Iterable[Appraisal] = (),
        *,
        problems: Iterable[str] = (),
        prices: Path | None = None,
    ) -> None:
        """
        Args:
            credits: all credits of the run, the latest last.
            prices: a price table, whose rows precede the shipped ones.
        """
        self.record = record
        """The stored run."""
        self.appraisals: tuple[Appraisal, ...] = tuple(appraisals)
        """Each measurement of the run, the latest last."""
        self.problems: tuple[str, ...] = tuple(problems)
        """Reasons why the run is not measured or not stored; empty if it is."""
        self._credits = tuple(credits)
        self._prices = prices

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def question(self) -> Question:
        return self.record.question

    @property
    def answer(self) -> str | None:
        """The answer; None if the run failed or was stopped before it."""
        return self.record.answer

    @property
    def status(self) -> RunStatus:
        """`ok`, `failed` or `interrupted`."""
        return self.record.status

    @property
    def error(self) -> RunError | None:
        """The error that ended the run; None if the status is `ok`."""
        return self.record.error

    @property
    def stop_reason(self) -> StopReason | None:
        return self.record.stop_reason

    @property
    def workflow(self) -> str:
        return self.record.workflow

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.record.steps

    @property
    def evidence(self) -> tuple[Passage, ...]:
        """The passages shown for the final answer."""
        return self.record.evidence

    @property
    def usage(self) -> Usage:
        """The cost of the run, without that of measuring it."""
        return self.record.usage

    @cached_property
    def credits(self) -> Credits:
        """The credits that `show` shows: those of the latest measurement of the whole run."""
        from hopscope.tracing.reports.appraised import shown_provenance

        shown = shown_provenance(self._credits)
        own = [credit for credit in self._credits if credit.provenance == shown]
        appraisals = [each for each in self.appraisals if each.provenance == shown]
        return Credits(self.record, own, appraisals[-1] if appraisals else None)

    def show(self) -> None:
        """Print the run with the credit of each step, as `hopscope run` does."""
        self._draw(None)

    def to_dict(self) -> dict[str, Any]:
        """The object that `hopscope run --json` prints."""
        return self._report.model_dump(mode="json")

    def __repr__(self) -> str:
        ended = f"answer {self.answer!r}" if self.error is None else self.error.message
        return f"<MeasuredRun {self.id[:12]} {self.workflow} {self.status}: {ended}>"

    def _repr_html_(self) -> str:
        from hopscope.api.views.html import html

        return html(self._draw)

    @cached_property
    def _report(self) -> "RunReport":
        from hopscope.runtime.budget.prices import prices
        from hopscope.tracing.reports.report import report

        table = prices(self._prices)
        return report(self.record, self._credits, self.appraisals, prices=table)

    def _draw(self, console: "Console | None") -> None:
        from hopscope.api.views import run_table

        run_table.show_run(
            self.record,
            self._credits,
            self.appraisals,
            prices=self._prices,
            json=False,
            console=console,
        )
