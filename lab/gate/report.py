"""The result of a gate, and its forms: tables, Markdown for a pull request, JUnit XML."""

from typing import TYPE_CHECKING, Literal

from hopscope.lab.gate.outcomes import Source
from hopscope.lab.table_forms.table import Cell, Table, methods
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Record
from hopscope.tracing.statistics.drops import MOST, TARGET, Drop, Power
from hopscope.tracing.statistics.over_questions import Estimate

if TYPE_CHECKING:
    from rich.console import Console

Verdict = Literal["fell", "passed", "unmeasured"]
OUTCOMES: dict[Verdict, Literal["failure", "passed", "skipped"]] = {
    "fell": "failure",
    "passed": "passed",
    "unmeasured": "skipped",
}

NAMED = 20
"""The most questions that a note names."""


class GateRow(Record):
    """One metric of one workflow."""

    workflow: str
    metric: str
    baseline: Estimate
    """The mean over the questions measured for both."""
    candidate: Estimate
    drop: Drop
    """The baseline minus the candidate, question by question."""
    power: Power
    verdict: Verdict

    @property
    def name(self) -> str:
        return f"{self.workflow}: {self.metric}"

    @property
    def summary(self) -> str:
        """The finding in a sentence."""
        drop = self.drop
        if self.verdict == "unmeasured":
            return f"{self.name} was not measured: {drop.reason}"
        means = f"{self.baseline.value:.3f} → {self.candidate.value:.3f}"
        fell = "fell" if self.verdict == "fell" else "is not shown to fall"
        return (
            f"{self.name} {fell} by more than {drop.allowed:g}: {means} over {drop.measured} "
            f"questions, p (Holm) {drop.adjusted:.4f}"
        )


class GateReport(Record):
    """The comparison of an experiment with its baseline. A notebook shows its table."""

    passed: bool
    """Whether no metric is shown to have fallen by more than is allowed."""
    candidate: Source
    baseline: Source
    confidence: float
    """1 minus the chance of any false alarm, over all rows."""
    find: float
    """The powers are those to find a drop larger than the allowed one by this much."""
    rows: tuple[GateRow, ...]
    only_candidate: tuple[str, ...]
    """Questions without a counterpart, by id, else by text."""
    only_baseline: tuple[str, ...]
    notes: tuple[str, ...]
    """Everything else to know: what was left out, and what differs besides the scores."""

    def show(self) -> None:
        """Print the table, as `hopscope gate` does."""
        from hopscope.lab.table_forms import terminal

        terminal.show([self.table()], None)

    def markdown(self) -> str:
        """The report for a comment on a pull request. Texts of questions and names can neither
        format it nor mention or link anything."""
        from hopscope.lab.table_forms.markdown import markdown

        return markdown([self.table()])

    def junit(self) -> str:
        """The report as JUnit XML: a test case for each row."""
        from hopscope.lab.gate.junit import Case, junit

        return junit(
            f"hopscope gate {self.candidate.experiment}",
            [
                Case(row.workflow, row.metric, OUTCOMES[row.verdict], row.summary)
                for row in self.rows
            ],
            properties={
                "baseline": self.baseline.experiment,
                "confidence": f"{self.confidence:g}",
                "seed": str(self.candidate.seed),
                "baseline_seed": str(self.baseline.seed),
            },
            notes=self.table().notes,
        )

    def table(self) -> Table:
        rows: tuple[dict[str, Cell], ...] = tuple(
            {
                "workflow": row.workflow,
                "metric": row.metric,
                "baseline": row.baseline,
                "candidate": row.candidate,
                "drop": row.drop,
                "allowed": row.drop.allowed,
                "adjusted": row.drop.adjusted,
                "power": row.power.chance,
                "needed": _needed(row.power),
                "verdict": row.verdict,
            }
            for row in self.rows
        )
        return Table(
            name="gate",
            title=f"Gate {'passed' if self.passed else 'failed'}: {self.candidate.experiment} "
            f"against {self.baseline.experiment}",
            columns={
                "workflow": "workflow",
                "metric": "metric",
                "baseline": "baseline",
                "candidate": "candidate",
                "drop": "drop",
                "allowed": "allowed",
                "adjusted": "p (Holm)",
                "power": f"power for {self.find:g} more",
                "needed": f"questions for {TARGET:.0%}",
                "verdict": "verdict",
            },
            rows=rows,
            notes=self._all_notes(),
            digits={"baseline": 3, "candidate": 3, "drop": 3, "allowed": 3, "adjusted": 4},
        )

    def _all_notes(self) -> tuple[str, ...]:
        tests = dict.fromkeys(row.drop.test for row in self.rows if row.drop.test)
        sides = self.candidate, self.baseline
        seeds = ", ".join(f"{side.experiment} {side.seed}" for side in sides)
        counterparts = (
            f"only in {side.experiment} and left out: {_listed(names)}"
            for side, names in zip(sides, (self.only_candidate, self.only_baseline), strict=True)
            if names
        )
        return (
            "fell: the mean drop is larger than allowed, shown with confidence "
            f"{self.confidence:g} over all {counted(len(self.rows), 'row')} ({'; '.join(tests)}); "
            f"seeds: {seeds}",
            *methods(*(each.interval for row in self.rows for each in (row.baseline, row.drop))),
            *counterparts,
            *self.notes,
        )

    def _repr_html_(self) -> str:
        from hopscope.api.views.html import html

        return html(self._draw)

    def _draw(self, console: "Console") -> None:
        from hopscope.lab.table_forms import terminal

        terminal.show([self.table()], None, console=console)


def _needed(power: Power) -> int | str | None:
    if power.needed is None and power.chance.value is not None:
        return f"> {MOST:,}"
    return power.needed


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    told = counted(len(names), "question")
    return f"{told}: {', '.join(names[:NAMED])}{more}"
