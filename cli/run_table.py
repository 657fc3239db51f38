"""How a run is printed: one line per step with what it was worth, totals below.

A terminal too narrow for the table gets the same as labelled lines.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hopscope.cli.render import number, out, plain, print_json, tokens

if TYPE_CHECKING:
    from pathlib import Path

    from hopscope.runtime.types import Appraisal, Credit, Pairs, Run, Usage
    from hopscope.tracing.report_records import (
        AppraisalReport,
        PassageReport,
        RunReport,
        StepReport,
        Total,
    )

BAR_CELLS = 8
TABLE_WIDTH = 130
"""Columns below which the table would squeeze its text."""


def show_run(
    run: "Run",
    credits: "Iterable[Credit]",
    appraisals: "Iterable[Appraisal]" = (),
    *,
    settings_hash: str | None = None,
    prices: "Path | None" = None,
    json: bool,
) -> None:
    """Print a run with the credit of every step, by the appraisal of those settings or else the
    one that `tracing.report.chosen` chooses. `prices` is a file that stands before the shipped
    table."""
    from hopscope.runtime.prices import prices as table
    from hopscope.tracing.report import report

    found = report(run, credits, appraisals, settings_hash=settings_hash, prices=table(prices))
    if json:
        print_json(found.model_dump(mode="json"))
        return
    console = out()
    _heading(console, found)
    if console.width >= TABLE_WIDTH:
        console.print(_table(found))
    else:
        _lines(console, found)
    _total(console, found.total)
    ended = found.stop_reason or found.status
    console.print(Text(f"run {found.id[:12]}  {found.workflow}  ended by {ended}", style="dim"))
    if found.appraisal:
        _appraisal(console, found.appraisal, found.total.currency)
    if refused := sorted({name for step in found.steps for name in step.refused}):
        told = (
            f"- the server refused {', '.join(refused)}: replies were had without (docs/readers.md)"
        )
        console.print(Text(told, style="dim"))
    for reason in _reasons(found):
        console.print(Text(f"- not measured: {plain(reason)}", style="dim"))
    if cut := _cut_off(found):
        console.print(Text(f"- {replies_cut('seper', cut)}", style="dim"))
    if dropped := _dropped(found):
        console.print(Text(f"- {context_cut('SePer', dropped)}", style="dim"))


def replies_cut(meter: str, cut: str) -> str:
    """That a meter does not know what some replies would have said."""
    from hopscope.cli.appraise import VARIANTS

    option, _ = VARIANTS.get(meter, (meter, {}))
    return f"{meter}: {cut} were cut off: raise -o {option}.max_tokens to know what they mean"


def context_cut(meter: str, dropped: Iterable[str]) -> str:
    """That a meter's reader did not see all passages."""
    keys = ", ".join(plain(key) for key in dropped)
    return f"{meter}: the context was too long, so of these not all was shown: {keys}"


def _cut_off(found: "RunReport") -> str | None:
    """The first replies that were cut off, of any step."""
    seper = [*(step.credit.seper for step in found.steps), found.total.seper]
    return next((part.cut_off for part in seper if part and part.cut_off), None)


def _dropped(found: "RunReport") -> tuple[str, ...]:
    seper = [found.total.seper, *(step.credit.seper for step in found.steps)]
    return tuple(dict.fromkeys(key for part in seper if part for key in part.dropped))


def _heading(console: Console, found: "RunReport") -> None:
    console.print(Text(plain(found.question), style="bold"))
    answer = Text("answer  ")
    answer.append(plain(found.answer) or "none", style="bold")
    if found.golds:
        answer.append(f"   gold  {plain(' | '.join(found.golds))}")
    console.print(answer)
    if found.error:
        console.print(Text(f"{found.status}: {plain(found.error)}", style="red"))


def _table(found: "RunReport") -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("step", no_wrap=True)
    table.add_column("query, passages (+ new), output", ratio=1, overflow="fold")
    for name in ("tokens", "s", "SePer", "ΔSePer [95 %]", "Shapley"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", width=BAR_CELLS, no_wrap=True)
    for name in ("GroGU", "ΔGroGU", "/1k tok"):
        table.add_column(name, justify="right", no_wrap=True)
    for step, before in _with_belief_before(found):
        cost = tokens(step.usage) if step.usage.calls else ""
        row: list[str | Text] = [str(step.index), step.name, _deed(step), cost]
        row.append(number(step.seconds))
        seper, grogu = step.credit.seper, step.credit.grogu
        if step.kind == "retrieve" and seper and seper.delta is not None:
            row += [
                f"{number(before)} → {number(seper.value)}",
                interval(seper.delta, seper.low, seper.high),
                number(seper.shapley, signed=True),
                bar(seper.delta if seper.shapley is None else seper.shapley),
            ]
        else:
            row += [""] * 4
        if step.kind == "retrieve" and grogu:
            row += [number(grogu.value, signed=True), number(grogu.delta, signed=True)]
        else:
            row += [""] * 2
        share = step.per_1000_tokens
        row.append("" if share is None else number(share, signed=True))
        table.add_row(*row)
    return table


def _lines(console: Console, found: "RunReport") -> None:
    for step, before in _with_belief_before(found):
        head = Text(f"{step.index} {step.name}  ", style="bold")
        head.append_text(_deed(step))
        head.append(f"  {tokens(step.usage)} tok " if step.usage.calls else "  ", style="dim")
        head.append(f"{number(step.seconds)} s", style="dim")
        console.print(head)
        seper, grogu = step.credit.seper, step.credit.grogu
        if step.kind != "retrieve":
            continue
        if seper and seper.delta is not None:
            line = Text(f"SePer {number(before)} → {number(seper.value)}")
            line.append(f"   ΔSePer {interval(seper.delta, seper.low, seper.high)}")
            line.append(f"\nShapley {number(seper.shapley, signed=True)} ")
            line.append_text(bar(seper.delta if seper.shapley is None else seper.shapley))
            if step.per_1000_tokens is not None:
                line.append(f"   {number(step.per_1000_tokens, signed=True)} per 1,000 tokens")
            console.print(Padding(line, (0, 0, 0, 4)))
        if grogu:
            held, gained = number(grogu.value, signed=True), number(grogu.delta, signed=True)
            console.print(Padding(Text(f"GroGU {held}   ΔGroGU {gained}"), (0, 0, 0, 4)))


def _with_belief_before(found: "RunReport") -> "Iterable[tuple[StepReport, float | None]]":
    """Each step with the belief before it."""
    before = found.total.seper.before if found.total.seper else None
    for step in found.steps:
        yield step, before
        if step.credit.seper:
            before = step.credit.seper.value


def _deed(step: "StepReport") -> Text:
    """What the step did, in a few words."""
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
    """The passage's Shapley share, where it has one."""
    seper = passage.credit.seper if passage.credit else None
    if seper is None or seper.shapley is None:
        return ""
    return f" {number(seper.shapley, signed=True)}"


def bar(value: float | None) -> Text:
    """A bar of up to eight cells: green for gain, red for loss, empty for nothing."""
    if value is None:
        return Text("")
    cells = min(BAR_CELLS, round(abs(value) * BAR_CELLS))
    return Text("█" * cells, style="green" if value > 0 else "red")


def interval(value: float, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return number(value, signed=True)
    return f"{number(value, signed=True)} [{number(low, signed=True)}, {number(high, signed=True)}]"


def _total(console: Console, total: "Total") -> None:
    parts = [several(total.retrievals, "retrieval"), spent(total.usage, total.seconds)]
    if total.cost:
        read = f" (prices of {total.prices_read})" if total.prices_read else ""
        parts.append(f"{money(total.cost, total.currency)}{read}")
    if total.seper and total.seper.delta is not None:
        seper = total.seper
        change = interval(total.seper.delta, seper.low, seper.high)
        believed = f"SePer {number(seper.before)} → {number(seper.after)}"
        parts.append(f"{believed}, ΔSePer {change} (n {seper.n})")
    if total.grogu and total.grogu.value is not None:
        parts.append(f"GroGU {number(total.grogu.value, signed=True)}")
    line = Text("total  ", style="bold")
    line.append(", ".join(parts), style="not bold")
    console.print(line)


def _appraisal(console: Console, found: "AppraisalReport", currency: str) -> None:
    line = f"measured with {spent(found.usage, found.seconds, found.pairs)}"
    if found.cost:
        line += f", {money(found.cost, currency)}"
    options = ", ".join(f"{key}={plain(str(value))}" for key, value in found.settings.items())
    line += f"  {found.id[:8]} ({options})"
    if found.others:
        line += f"  also measured: {', '.join(other[:8] for other in found.others)}"
    console.print(Text(line, style="dim"))


def several(count: int, noun: str) -> str:
    """A number of things."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def money(cost: float, currency: str) -> str:
    """To the ten-thousandth, or to two digits where that is less."""
    return f"{cost:,.4f} {currency}" if cost >= 0.001 else f"{cost:.2g} {currency}"


def spent(usage: "Usage", seconds: float, pairs: "Pairs | None" = None) -> str:
    counted = f"{usage.input_tokens} + {usage.output_tokens} tokens"
    if usage.thinking_tokens:
        counted += f" ({usage.thinking_tokens} thought)"
    if usage.uncounted:
        counted = f"{counted} counted, {several(usage.uncounted, 'call')} without a count"
    parts = [several(usage.calls, "call"), counted]
    if pairs is not None:
        parts.append(f"{pairs.asked} pairs of texts ({pairs.computed} computed)")
    return ", ".join([*parts, f"{seconds:.2f} s"])


def _reasons(found: "RunReport") -> list[str]:
    """Why numbers are missing, each once."""
    parts = [
        found.total.seper,
        found.total.grogu,
        *(part for step in found.steps for part in (step.credit.seper, step.credit.grogu)),
    ]
    return list(dict.fromkeys(part.reason for part in parts if part and part.reason))
