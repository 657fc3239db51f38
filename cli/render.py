"""What a person sees: tables on stdout, progress and notes on stderr.

Questions, passages and model output are untrusted: they are printed as plain text with control
characters removed, never as markup.
"""

import json as jsonlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from hopscope.runtime.types import Credit, Record, Run
    from hopscope.tracing.report import RunReport, StepReport, TotalSePer

BAR_CELLS = 8
PLAIN_WIDTH = 150
"""Columns when stdout is no terminal."""


def out() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def note(message: str) -> None:
    """A remark for the person at the terminal."""
    print(f"hopscope: {message}", file=sys.stderr)


def progress(message: str) -> None:
    """Say what is going on, on one line that the next message replaces; silent without a
    terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{message}", end="", file=sys.stderr, flush=True)


def plain(text: str | None) -> str:
    """Text without control characters, on one line."""
    folded = " ".join((text or "").split())
    return "".join(character for character in folded if character.isprintable())


def print_json(value: Any) -> None:
    print(jsonlib.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))


def number(value: float | None, *, signed: bool = False, digits: int = 2) -> str:
    if value is None:
        return "-"
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    # -0.00 and +0.00 both mean no change.
    return f"{0:.{digits}f}" if float(text) == 0 else text


def bar(value: float | None) -> Text:
    """A bar of up to eight cells: green for gain, red for loss, empty for nothing."""
    if value is None:
        return Text("")
    cells = min(BAR_CELLS, round(abs(value) * BAR_CELLS))
    return Text("█" * cells, style="green" if value > 0 else "red")


def interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "-"
    if low is None or high is None:
        return number(value, signed=True)
    return f"{number(value, signed=True)} [{number(low, signed=True)}, {number(high, signed=True)}]"


def show_report(run: "Run", credits: "Iterable[Credit]", *, json: bool) -> None:
    """One run: a line per step, totals below."""
    from hopscope.tracing.report import report

    found = report(run, credits)
    if json:
        print_json(found.model_dump(mode="json"))
        return
    console = out()
    _heading(console, found)
    console.print(_steps_table(found))
    _total(console, found)
    for reason in _reasons(found):
        console.print(Text(f"- not measured: {reason}", style="dim"))


def _heading(console: Console, found: "RunReport") -> None:
    console.print(Text(plain(found.question), style="bold"))
    answer = Text("answer  ")
    answer.append(plain(found.answer) if found.answer else "none", style="bold")
    if found.golds:
        answer.append(f"   gold  {plain(' | '.join(found.golds))}")
    console.print(answer)
    if found.error:
        console.print(Text(f"{found.status}: {plain(found.error)}", style="red"))


def _steps_table(found: "RunReport") -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("step", no_wrap=True)
    table.add_column("query, passages (+ new), output", ratio=1, overflow="fold")
    for name in ("tokens", "s", "SePer", "ΔSePer [95 %]", "Shapley"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", width=BAR_CELLS, no_wrap=True)
    for name in ("GroGU", "ΔGroGU", "/1k tok"):
        table.add_column(name, justify="right", no_wrap=True)
    before = found.total.seper.before if found.total.seper else None
    for step in found.steps:
        table.add_row(*_row(step, before))
        if step.credit.seper:
            before = step.credit.seper.value
    return table


def _row(step: "StepReport", before: float | None) -> list[str | Text]:
    row: list[str | Text] = [
        str(step.index),
        step.name,
        _deed(step),
        str(step.usage.tokens) if step.usage.calls else "",
        number(step.seconds),
    ]
    seper, grogu = step.credit.seper, step.credit.grogu
    if step.kind != "retrieve" or seper is None:
        row += ["", "", "", ""]
    else:
        shown = seper.delta if seper.shapley is None else seper.shapley
        row += [
            f"{number(before)} → {number(seper.value)}",
            interval(seper.delta, seper.low, seper.high),
            number(seper.shapley, signed=True),
            bar(shown),
        ]
    if step.kind != "retrieve" or grogu is None:
        row += ["", ""]
    else:
        row += [number(grogu.value, signed=True), number(grogu.delta, signed=True)]
    measured = step.kind == "retrieve" and step.per_1000_tokens is not None
    row.append(number(step.per_1000_tokens, signed=True) if measured else "")
    return row


def _deed(step: "StepReport") -> Text:
    """What the step did, in a few words."""
    text = Text()
    if step.query is not None:
        text.append(f"“{plain(step.query)}”")
        for passage in step.passages:
            text.append(" ")
            if passage.new:
                text.append(f"+{plain(passage.title) or passage.id}", style="green")
            else:
                text.append(f"({plain(passage.title) or passage.id})", style="dim")
    elif step.output is not None:
        text.append(f"→ {plain(step.output)}")
    return text


def _total(console: Console, found: "RunReport") -> None:
    total = found.total
    line = Text("total   ", style="bold")
    line.append(
        f"{total.retrievals} retrievals, {total.usage.calls} calls, "
        f"{total.usage.input_tokens} + {total.usage.output_tokens} tokens, {total.seconds:.2f} s",
        style="not bold",
    )
    if total.seper:
        line.append(_believed(total.seper), style="not bold")
    if total.grogu:
        line.append(f", GroGU {number(total.grogu.value, signed=True)}", style="not bold")
    console.print(line)
    stopped = found.stop_reason or found.status
    console.print(Text(f"run {found.id[:12]}  {found.workflow}  ended by {stopped}", style="dim"))


def _believed(seper: "TotalSePer") -> str:
    change = interval(seper.delta, seper.low, seper.high)
    return f", SePer {number(seper.before)} → {number(seper.after)}, ΔSePer {change} (n {seper.n})"


def _reasons(found: "RunReport") -> list[str]:
    parts = [
        found.total.seper,
        found.total.grogu,
        *(part for step in found.steps for part in (step.credit.seper, step.credit.grogu)),
    ]
    return list(dict.fromkeys(part.reason for part in parts if part and part.reason))


def show_summaries(summaries: "Sequence[Record]", *, json: bool) -> None:
    rows = [summary.model_dump(mode="json") for summary in summaries]
    if json:
        print_json(rows)
        return
    if not rows:
        note("no runs yet: make one with `hopscope demo`")
        return
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for name in ("run", "started", "workflow", "status", "steps", "tokens"):
        table.add_column(name, no_wrap=True)
    table.add_column("ΔSePer", justify="right", no_wrap=True)
    table.add_column("question → answer", ratio=1)
    for row in rows:
        table.add_row(
            row["id"][:12],
            row["started"][:19].replace("T", " "),
            row["workflow"],
            row["status"],
            str(row["steps"]),
            str(row["usage"]["input_tokens"] + row["usage"]["output_tokens"]),
            number(row["seper_delta"], signed=True),
            Text(f"{plain(row['question'])} → {plain(row['answer']) or 'none'}"),
        )
    out().print(table)


def show_components(rows: Sequence[Mapping[str, Any]], *, json: bool) -> None:
    if json:
        print_json(rows)
        return
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column("name", no_wrap=True)
    table.add_column("what it is", ratio=1)
    table.add_column("options")
    for row in rows:
        options = ", ".join(
            key if value is None else f"{key}={value}" for key, value in row["options"].items()
        )
        table.add_row(row["name"], Text(row["summary"]), Text(options))
    out().print(table)


def show_checks(rows: Sequence[tuple[str, str, str]], *, json: bool) -> None:
    if json:
        print_json([{"name": n, "status": s, "detail": d} for n, s, d in rows])
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    colours = {"ok": "green", "missing": "yellow", "off": "dim"}
    for name, status, detail in rows:
        table.add_row(name, Text(status, style=colours[status]), Text(detail))
    out().print(table)
