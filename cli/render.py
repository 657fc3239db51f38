"""What a person sees: tables on stdout, progress and notes on stderr.

Questions, passages and model output are untrusted: they are printed as plain text with control
characters removed, never as markup.
"""

import json as jsonlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from hopscope.cli.encoding import carries_everything
from hopscope.cli.grid import Column, Grid

if TYPE_CHECKING:
    from hopscope.runtime.types import Usage
    from hopscope.store.summary import RunSummary

PLAIN_WIDTH = 150
"""Columns when stdout is no terminal and COLUMNS does not say how many."""


def out() -> Console:
    console = Console(highlight=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdecimal():
        return console
    return Console(highlight=False, width=PLAIN_WIDTH)


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
    print(jsonlib.dumps(value, ensure_ascii=not carries_everything(), indent=2, allow_nan=False))


def tokens(usage: "Usage") -> str:
    """How many tokens, or `?` where nobody counted them."""
    return "?" if usage.uncounted else str(usage.tokens)


def number(value: float | None, *, signed: bool = False, digits: int = 2) -> str:
    if value is None:
        return "-"
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    # -0.00 and +0.00 both mean no change.
    return f"{0:.{digits}f}" if float(text) == 0 else text


def show_summaries(summaries: "Sequence[RunSummary]", *, json: bool) -> None:
    rows = [summary.model_dump(mode="json") for summary in summaries]
    if json:
        print_json(rows)
        return
    if not rows:
        note("no runs yet: make one with `hopscope demo`")
        return
    columns = [
        Column("run"),
        Column("started", 5),
        Column("workflow", wraps=12),
        Column("status", 2),
        Column("steps", 4, right=True),
        Column("tokens", 3, right=True),
        Column("ΔSePer", 1, right=True),
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
            number(row["seper_delta"], signed=True),
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
        what = Text(row["summary"])
        if row["paper"]:
            what.append(f"\n{row['paper']}", style="dim")
        cells.append((row["name"], what, Text(options)))
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
