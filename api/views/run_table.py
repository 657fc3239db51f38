"""The table of a run: one line per step with its credit, totals below.

On a narrow terminal labelled lines replace the table.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hopscope.api.views import context_lines
from hopscope.api.views.render import number, out, plain, print_json, size, tokens
from hopscope.runtime.texts.counting import counted
from hopscope.tracing import proxies

if TYPE_CHECKING:
    from pathlib import Path

    from hopscope.api.views.utilities import Shown
    from hopscope.runtime.types import Appraisal, Credit, GameValues, PairCounts, Run, Usage
    from hopscope.tracing.reports.records import (
        AppraisalReport,
        PassageReport,
        RunReport,
        StepReport,
        Total,
    )

TABLE_WIDTH = 130
"""Columns of the terminal below which the table of the default meters would squeeze its text,"""
COLUMN_WIDTH = 12
"""and by how much a further column of the table moves that."""
DEFAULT_COLUMNS = 5
TAUGHT = {"search_agent": "tiny:search"}
"""The embedded readers that write the form of a workflow, where the default one does not."""


def show_run(
    run: "Run",
    credits: "Iterable[Credit]",
    appraisals: "Iterable[Appraisal]" = (),
    games: "Iterable[GameValues]" = (),
    *,
    settings_hash: str | None = None,
    prices: "Path | None" = None,
    json: bool,
    console: Console | None = None,
    answers: bool = False,
) -> None:
    """Print a run with the credit of every step, by the appraisal of those settings or else the
    one that `tracing.reports.appraised.shown` selects. `prices` is a file that stands before the
    shipped table; `console` is stdout's unless given; `answers` also prints the answers behind the
    values."""
    from hopscope.api.views import utilities
    from hopscope.runtime.budget.prices import prices as table
    from hopscope.tracing.reports.report import report

    found = report(
        run,
        credits,
        appraisals,
        settings_hash=settings_hash,
        prices=table(prices),
        games=games,
    )
    if json:
        print_json(found.model_dump(mode="json"))
        return
    console = console or out()
    _heading(console, found)
    shown = utilities.shown(found)
    further = sum(len(each.headings) for each in shown) - DEFAULT_COLUMNS
    if console.width >= TABLE_WIDTH + COLUMN_WIDTH * max(0, further):
        console.print(_table(found, shown))
    else:
        _lines(console, found, shown)
    _total(console, found.total, shown)
    if answers:
        context_lines.show(console, found)
    ended = found.stop_reason or found.status
    console.print(Text(f"run {found.id[:12]}  {found.workflow}  ended by {ended}", style="dim"))
    if found.prompts:
        console.print(Text(f"prompts {plain(found.prompts)}", style="dim"), soft_wrap=True)
    if not run.answer and _formless(run):
        console.print(Text(f"- {_hint(run.workflow)}", style="dim"))
    if found.appraisal:
        _appraisal(console, found.appraisal, found.reader, found.total.currency)
    if refused := sorted({name for step in found.steps for name in step.refused}):
        told = (
            f"- the server refused {', '.join(refused)}: replies were had without (docs/readers.md)"
        )
        console.print(Text(told, style="dim"))
    for reason in utilities.reasons(found):
        console.print(Text(f"- not measured: {plain(reason)}", style="dim"))
    for each in shown:
        parts = each.parts(found)
        if cut := next((part.cut_off for part in (*parts[1:], *parts[:1]) if part.cut_off), None):
            console.print(Text(f"- {replies_cut(each.meter, cut)}", style="dim"))
        if dropped := dict.fromkeys(key for part in parts for key in part.dropped):
            console.print(Text(f"- {context_cut(each.display.heading, dropped)}", style="dim"))


def replies_cut(meter: str, cut: str) -> str:
    """The note on replies that were cut off, whose meaning is unknown."""
    from hopscope.tracing.meters import VARIANTS

    option, _ = VARIANTS.get(meter, (meter, {}))
    return f"{meter}: {cut} were cut off: raise -o {option}.max_tokens to know what they mean"


def context_cut(meter: str, dropped: Iterable[str]) -> str:
    """The note on passages that a meter's reader did not see."""
    keys = ", ".join(plain(key) for key in dropped)
    return f"{meter}: the context was too long, so of these not all was shown: {keys}"


def _heading(console: Console, found: "RunReport") -> None:
    console.print(Text(plain(found.question), style="bold"))
    answer = Text("answer  ")
    answer.append(plain(found.answer) or "none", style="bold")
    if found.golds:
        answer.append(f"   gold  {plain(' | '.join(found.golds))}")
    console.print(answer)
    if found.error:
        console.print(Text(f"{found.status}: {plain(found.error)}", style="red"))


def _table(found: "RunReport", shown: "list[Shown]") -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("step", no_wrap=True)
    table.add_column("query, passages (+ new), output", ratio=1, overflow="fold")
    for name in ("tokens", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in shown:
        for name in each.headings:
            table.add_column(name, justify="right", no_wrap=True)
        if each.bar_cells:
            table.add_column("", width=each.bar_cells, no_wrap=True)
    table.add_column("/1k tok", justify="right", no_wrap=True)
    befores = [each.befores(found) for each in shown]
    for place, step in enumerate(found.steps):
        cost = tokens(step.usage) if step.usage.calls else ""
        row: list[str | Text] = [str(step.index), step.name, _deed(step), cost]
        row.append(number(step.seconds))
        for each, before in zip(shown, befores, strict=True):
            row += each.cells(step, before[place])
        share = step.per_1000_tokens
        row.append("" if share is None else number(share, signed=True))
        table.add_row(*row)
    return table


def _lines(console: Console, found: "RunReport", shown: "list[Shown]") -> None:
    befores = [each.befores(found) for each in shown]
    for place, step in enumerate(found.steps):
        head = Text(f"{step.index} {step.name}  ", style="bold")
        head.append_text(_deed(step))
        head.append(f"  {tokens(step.usage)} tok " if step.usage.calls else "  ", style="dim")
        if step.seconds is not None:
            head.append(f"{number(step.seconds)} s", style="dim")
        console.print(head)
        share = step.per_1000_tokens
        for each, before in zip(shown, befores, strict=True):
            lines = list(each.lines(step, before[place]))
            if lines and share is not None and each.display.baseline:
                lines[-1].append(f"   {number(share, signed=True)} per 1,000 tokens")
                share = None  # it is by the first of these meters
            for line in lines:
                console.print(Padding(line, (0, 0, 0, 4)))


def _deed(step: "StepReport") -> Text:
    """The step's query and passages, or its output."""
    text = Text(style="not bold")
    if step.query is not None:
        text.append(f"“{plain(step.query)}”")
        for passage in step.passages:
            name = plain(passage.title) or plain(passage.id)
            if passage.id in step.dangling:
                name += " [not shown]"
            text.append(
                f" +{name}" if passage.new else f" ({name})", "green" if passage.new else "dim"
            )
            text.append(_share(passage))
    elif step.output is not None:
        text.append(f"→ {plain(step.output)}")
    return text


def _share(passage: "PassageReport") -> str:
    """The passage's Shapley share by the first meter that has one."""
    found = (passage.credit or {}).values()
    shares = [each.shapley for each in found if each and each.shapley is not None]
    return f" {number(shares[0], signed=True)}" if shares else ""


def _total(console: Console, total: "Total", shown: "list[Shown]") -> None:
    parts = [counted(total.retrievals, "retrieval"), spent(total.usage, total.seconds)]
    if total.cost:
        read = f" (prices of {total.prices_read})" if total.prices_read else ""
        parts.append(f"{money(total.cost, total.currency)}{read}")
    parts += [part for each in shown for part in each.total(total)]
    line = Text("total  ", style="bold")
    line.append(", ".join(parts), style="not bold")
    console.print(line)


def _formless(run: "Run") -> bool:
    """Whether no reply was in the form that the workflow reads."""
    read = [step.parse_ok for step in run.steps if step.parse_ok is not None]
    return bool(read) and not any(read)


def _hint(workflow: str) -> str:
    told = f"no reply was in the form that {workflow} reads: choose a reader that writes it"
    return f"{told}{f', as --reader {TAUGHT[workflow]} does' if workflow in TAUGHT else ''}"


def _appraisal(console: Console, found: "AppraisalReport", ran: str, currency: str) -> None:
    """Print the cost and the settings of the measurement of a run that the reader `ran` ran."""
    line = f"measured with {spent(found.usage, found.seconds, found.pairs)}"
    if found.cost:
        line += f", {money(found.cost, currency)}"
    options = ", ".join(f"{key}={plain(str(value))}" for key, value in found.settings.items())
    line += f"  {found.id[:8]} ({options})"
    if found.others:
        line += f"  also measured: {', '.join(other[:8] for other in found.others)}"
    console.print(Text(line, style="dim"))
    if remark := proxies.told(ran, found.reader):
        console.print(Text(plain(remark), style="dim"))
    if kept := found.coalitions:
        count = f"{kept.stored:,}"
        if kept.measured > kept.stored:
            count += f" of {kept.measured:,}"
        told = f"{count} coalition values stored, {size(kept.bytes)}"
        console.print(Text(f"{told}: show --interactions and --without use them", style="dim"))


def money(cost: float, currency: str) -> str:
    """The cost to the ten-thousandth, or to two digits if smaller."""
    return f"{cost:,.4f} {currency}" if cost >= 0.001 else f"{cost:.2g} {currency}"


def spent(usage: "Usage", seconds: float | None, pairs: "PairCounts | None" = None) -> str:
    """Calls, tokens and time; a time that nobody measured is left out."""
    tokens = f"{usage.input_tokens} + {usage.output_tokens} tokens"
    if usage.thinking_tokens:
        tokens += f" ({usage.thinking_tokens} thought)"
    if usage.uncounted:
        tokens = f"{tokens} counted, {counted(usage.uncounted, 'call')} without a count"
    parts = [counted(usage.calls, "call"), tokens]
    if pairs is not None:
        parts.append(f"{counted(pairs.asked, 'pair')} of texts ({pairs.computed} computed)")
    return ", ".join(parts if seconds is None else [*parts, f"{seconds:.2f} s"])
