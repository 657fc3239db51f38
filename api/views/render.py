"""Terminal output: tables on stdout, progress and notes on stderr.

Invariant: all that a command prints goes through `out`, `err`, `say`, `note`, `progress` or
`print_json`. Questions, passages, names, model output and servers' messages are untrusted: nothing
in them is obeyed, neither by the terminal (control characters, links, marks of direction) nor by
rich (markup).
"""

import json as jsonlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from hopscope.api.views.encoding import carries_everything
from hopscope.api.views.grid import Column, Grid
from hopscope.runtime.texts.storable import line, lines

if TYPE_CHECKING:
    from hopscope.runtime.types import Usage
    from hopscope.store.runs.summary import RunSummary

PLAIN_WIDTH = 150
"""Columns when stdout is no terminal and COLUMNS does not say how many."""
UNSAFE = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
"""Characters that JSON may hold unescaped although a terminal obeys or hides them."""


class _Harmless(RenderHook):
    """Removes control characters and links from all console output."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Plain(renderable) for renderable in renderables]


class _Plain:
    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._inner, options):
            text, style, control = segment
            unlinked = style.update_link(None) if style and style.link else style
            yield segment if control else Segment(lines(text), unlinked)


def _console(*, stderr: bool, width: int | None = None) -> Console:
    # rich leaves bold and dim where NO_COLOR is set.
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return harmless(
        Console(stderr=stderr, width=width, color_system=colours, highlight=False, markup=False)
    )


def harmless(console: Console) -> Console:
    """The console, with control characters and links removed from its output."""
    console.push_render_hook(_Harmless())
    return console


def out() -> Console:
    """The console of stdout."""
    console = _console(stderr=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdecimal():
        return console
    return _console(stderr=False, width=PLAIN_WIDTH)


def err() -> Console:
    """The console of stderr."""
    return _console(stderr=True)


def say(text: str, *, stderr: bool = False) -> None:
    """Print text with the lines it has."""
    print(lines(text), file=sys.stderr if stderr else sys.stdout, flush=stderr)


def note(message: str) -> None:
    """Print a remark on stderr. Further lines are indented, so that no message looks like two."""
    say("\n  ".join(f"hopscope: {message}".splitlines()), stderr=True)


def progress(message: str) -> None:
    """Print the progress on one line, which the next message replaces; silent without a
    terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{plain(message)}", end="", file=sys.stderr, flush=True)


def plain(text: str | None) -> str:
    """Text without control characters, on one line."""
    return line(text or "")


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Print JSON, with the control characters of terminals escaped."""
    ascii_only = not carries_everything()
    text = jsonlib.dumps(value, ensure_ascii=ascii_only, indent=indent, allow_nan=False)
    return UNSAFE.sub(lambda found: jsonlib.dumps(found[0])[1:-1], text)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    print(as_json(value, indent=indent), flush=indent is None)


def tokens(usage: "Usage") -> str:
    """The number of tokens, or `?` if uncounted."""
    return "?" if usage.uncounted else str(usage.tokens)


def size(count: int) -> str:
    """Bytes in a unit in which a small file is not 0."""
    if count < 100:
        return f"{count} B"
    if count < 100_000:
        return f"{count / 1e3:.1f} kB"
    return f"{count / 1e6:,.1f} MB"


def number(value: float | None, *, signed: bool = False, digits: int = 2) -> str:
    if value is None:
        return "-"
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    # -0.00 and +0.00 both mean no change.
    return f"{0:.{digits}f}" if float(text) == 0 else text


def interval(value: float | None, low: float | None, high: float | None, *, digits: int = 2) -> str:
    """A change with its interval, where it has one."""
    ends = [number(each, signed=True, digits=digits) for each in (value, low, high)]
    return ends[0] if low is None or high is None else "{} [{}, {}]".format(*ends)


def _total(summary: "RunSummary", meter: str) -> str:
    """A meter's total of a run."""
    from hopscope.tracing.reports.displays import display

    return number(summary.totals.get(meter), signed=True, digits=display(meter).digits)


def show_summaries(summaries: "Sequence[RunSummary]", *, json: bool) -> None:
    rows = [summary.model_dump(mode="json") for summary in summaries]
    if json:
        print_json(rows)
        return
    if not rows:
        note("no runs yet: make one with `hopscope demo`")
        return
    from hopscope.tracing.reports.displays import display, leading, shown

    leads = [leading(summary.totals) for summary in summaries]
    totals = shown(lead for lead in leads if lead) or ["seper"]
    columns = [
        Column("run"),
        Column("started", 5),
        Column("workflow", wraps=12),
        Column("status", 2),
        Column("steps", 4, right=True),
        Column("tokens", 3, right=True),
        *(Column(display(meter).change, 1, right=True) for meter in totals),
        Column("question → answer", wraps=28),
    ]
    cells = [
        (
            row["id"][:12],
            row["started"][:19].replace("T", " "),
            Text(plain(row["workflow"])),
            row["status"],
            str(row["steps"]),
            tokens(summary.usage),
            *(_total(summary, meter) for meter in totals),
            Text(f"{plain(row['question'])} → {plain(row['answer']) or 'none'}"),
        )
        for row, summary in zip(rows, summaries, strict=True)
    ]
    out().print(Grid(columns, cells))


def show_components(rows: Sequence[Mapping[str, Any]], *, json: bool) -> None:
    if json:
        print_json(rows)
        return
    cells = []
    for row in rows:
        options = ", ".join(
            key if value is None else f"{key}={value}" for key, value in row["options"].items()
        )
        what = Text(plain(row["summary"]))
        if row["paper"]:
            what.append(f"\n{plain(row['paper'])}", style="dim")
        if row.get("gold"):
            what.append("\nneeds gold answers", style="dim")
        if row["from"]:
            what.append(f"\nfrom {plain(row['from'])}", style="dim")
        cells.append((Text(plain(row["name"])), what, Text(plain(options))))
    columns = [Column("name"), Column("what it is", wraps=24), Column("options", wraps=14)]
    out().print(Grid(columns, cells))


def show_checks(rows: Sequence[tuple[str, str, str]], *, json: bool) -> None:
    if json:
        print_json([{"name": n, "status": s, "detail": d} for n, s, d in rows])
        return
    colours = {"ok": "green", "missing": "yellow", "off": "dim"}
    cells = [
        (name, Text(status, style=colours[status]), Text(detail)) for name, status, detail in rows
    ]
    columns = [Column("name"), Column("status"), Column("detail", wraps=20)]
    out().print(Grid(columns, cells, headed=False))
