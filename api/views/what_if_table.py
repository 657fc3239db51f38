"""The tables of `hopscope show --interactions` and `--without`."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from hopscope.api.views.context_lines import samples
from hopscope.api.views.grid import Column, Grid
from hopscope.api.views.render import interval, number, out, plain
from hopscope.api.views.rows import Rows
from hopscope.tracing.reports.displays import display
from hopscope.tracing.what_if.answers import (
    InteractionRow,
    WithoutRow,
    interaction_rows,
    without_rows,
)

if TYPE_CHECKING:
    from rich.console import Console

    from hopscope.tracing.what_if.recall import Players, Recall


def interactions(recall: "Recall", over: "Players") -> Rows[InteractionRow]:
    """The interactions of all pairs of steps, or of the passages of each step."""
    return Rows(InteractionRow, interaction_rows(recall, over), _draw_interactions)


def without(recall: "Recall", names: Iterable[str | int]) -> Rows[WithoutRow]:
    """Every meter's value without these steps and passages.

    Raises:
        UsageError: the run has no such step or passage.
    """
    return Rows(WithoutRow, without_rows(recall, names), _draw_without)


def _draw_interactions(rows: Sequence[InteractionRow], console: "Console | None" = None) -> None:
    """Print the interactions of pairs; the default console is stdout."""
    console = console or out()
    if not rows:
        console.print("no interactions: fewer than two parts brought a passage that was shown")
        return
    several = len({row.step for row in rows}) > 1 or rows[0].step is not None
    columns = [
        Column("meter"),
        *([Column("step", 1, right=True)] if several else []),
        Column("first", wraps=16),
        Column("second", wraps=16),
        Column("interaction", 1, right=True),
        Column(""),
    ]
    lines: list[tuple[str | Text, ...]] = []
    for row in rows:
        digits = display(row.meter).digits
        lines.append(
            (
                row.meter,
                *([str(row.step)] if several else []),
                Text(plain(f"{row.first} {row.names[0]}")),
                Text(plain(f"{row.second} {row.names[1]}")),
                interval(row.value, row.low, row.high, digits=digits),
                _meaning(row),
            )
        )
    console.print(Grid(columns, lines, stacked=True))
    _reasons(console, (row.reason for row in rows))
    if sampled := dict.fromkeys(row.estimator for row in rows if " from " in row.estimator):
        for estimator in sampled:
            console.print(Text(f"- sampled: {plain(estimator)}", style="dim"))


def _draw_without(rows: Sequence[WithoutRow], console: "Console | None" = None) -> None:
    """Print the values without some parts; the default console is stdout."""
    console = console or out()
    names = ", ".join(name if name.startswith("p:") else f"step {name}" for name in rows[0].without)
    console.print(Text(plain(f"without {names}"), style="bold"))
    columns = [
        Column("meter"),
        Column("with all", 1, right=True),
        Column("without", 1, right=True),
        Column("difference", 1, right=True),
    ]
    lines: list[tuple[str | Text, ...]] = []
    for row in rows:
        digits = display(row.meter).digits
        lines.append(
            (
                row.meter,
                number(row.full, digits=digits),
                _level(row, digits),
                interval(row.difference, row.difference_low, row.difference_high, digits=digits),
            )
        )
    console.print(Grid(columns, lines, stacked=True))
    for row in rows:
        for told, groups in (("with all", row.full_answers), ("without", row.answers)):
            if groups:
                line = Text(f"{row.meter} samples {told}: ", style="dim")
                console.print(line.append_text(samples(groups)))
    _reasons(console, (row.reason for row in rows))


def _meaning(row: InteractionRow) -> str:
    """The reading of an interaction whose interval leaves out 0."""
    if row.value is None or row.low is None or row.high is None:
        return ""
    if row.low > 0:
        return "need each other"
    return "redundant" if row.high < 0 else ""


def _level(row: WithoutRow, digits: int) -> str:
    told, *ends = (number(each, digits=digits) for each in (row.value, row.low, row.high))
    return told if row.low is None or row.high is None else "{} [{}, {}]".format(told, *ends)


def _reasons(console: "Console", reasons: Iterable[str | None]) -> None:
    for reason in dict.fromkeys(filter(None, reasons)):
        console.print(Text(f"- not measured: {plain(reason)}", style="dim"))
