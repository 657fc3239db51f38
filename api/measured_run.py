"""A run with the credit of its steps."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hopscope.api.appraiser import RULES, rules_of
from hopscope.api.credits import Credits
from hopscope.api.views.rows import Rows
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import (
    Appraisal,
    Credit,
    GameValues,
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
    from hopscope.tracing.what_if.answers import InteractionRow, WithoutRow
    from hopscope.tracing.what_if.recall import Recall


class MeasuredRun:
    """One question through one workflow, and the worth of each retrieval.

    It never changes; threads may share it. A notebook shows it as its table.
    """

    def __init__(
        self,
        record: Run,
        credits: Iterable[Credit] = (),
        appraisals: Iterable[Appraisal] = (),
        games: Iterable[GameValues] = (),
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
        self.games: tuple[GameValues, ...] = tuple(games)
        """The coalition values of all measurements, from which `interactions`, `without` and
        `share` answer without a model."""
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
    def prompts(self) -> str | None:
        """The set of prompts or its folder, with the hash of its files; None for the default."""
        return self.record.prompts

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

    def interactions(self, over: Literal["steps", "passages"] = "steps") -> "Rows[InteractionRow]":
        """Which steps, or which passages of a step, need each other (positive), and which are
        redundant (negative): the Shapley interaction index of every pair (Grabisch & Roubens 1999),
        by each meter, from the stored coalition values.

        Raises:
            UsageError: no values are stored, or `over` is neither.
        """
        from hopscope.api.views import what_if_table

        _check_players(over)
        return what_if_table.interactions(self._recall, over)

    def without(self, *parts: int | str) -> "Rows[WithoutRow]":
        """Every meter's value without some parts, with intervals and the difference, from the
        stored coalition values; what was not measured has a reason.

        Args:
            parts: numbers of steps, and passages as `"p:KEY"` or `"p:TITLE"`.

        Raises:
            UsageError: no values are stored, or the run has no such part.
        """
        from hopscope.api.views import what_if_table

        return what_if_table.without(self._recall, parts)

    def share(self, *rules: str, over: Literal["steps", "passages"] = "steps") -> Credits:
        """Credits by these rules from the stored coalition values, equal to those of a
        measurement; what was not measured has a reason.

        Args:
            rules: names of rules, or Python files; by default the three of `hopscope run`.

        Raises:
            UsageError: no values are stored, or there is no such rule.
        """
        names = rules or RULES
        built = rules_of(names, self._recall.provenance)
        options = [word for name in names for word in ("--rule", name)]
        _check_players(over)
        return Credits(self.record, self._recall.asking(*options).share(built, over))

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
    def _recall(self) -> "Recall":
        from hopscope.tracing.reports.appraised import shown_provenance
        from hopscope.tracing.what_if.answers import recall

        return recall(self.record, shown_provenance(self._credits), self.games)

    @cached_property
    def _report(self) -> "RunReport":
        from hopscope.runtime.budget.prices import prices
        from hopscope.tracing.reports.report import report

        table = prices(self._prices)
        return report(self.record, self._credits, self.appraisals, prices=table, games=self.games)

    def _draw(self, console: "Console | None") -> None:
        from hopscope.api.views import run_table

        run_table.show_run(
            self.record,
            self._credits,
            self.appraisals,
            self.games,
            prices=self._prices,
            json=False,
            console=console,
        )


def _check_players(over: str) -> None:
    if over not in ("steps", "passages"):
        raise UsageError(f"over={over!r}: choose from steps, passages")
