"""The progress of a running experiment on stderr: a live table on a terminal, occasional lines
elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hopscope.api.views.grid import Column, Grid, numbers
from hopscope.api.views.render import err, number, plain, say
from hopscope.tracing.reports.displays import display

if TYPE_CHECKING:
    from hopscope.lab.experiments.tally import Row, Tally
    from hopscope.runtime.budget.prices import Price
    from hopscope.runtime.types import Usage

LINE_SECONDS = 10.0
"""Seconds between two lines without a terminal."""


class Board:
    """A tally with its speed."""

    def __init__(self, tally: "Tally", price: "Price") -> None:
        self._tally = tally
        self._price = price
        self._began = time.monotonic()
        self._done_before = tally.all.done
        self._tokens = 0

    def add(self, usage: "Usage") -> None:
        """Count usage."""
        self._tokens += usage.tokens

    def __rich__(self) -> Group:
        """The table; drawn by rich whenever it likes."""
        whole = self._tally.all
        bar = Table.grid()  # a bar alone does not end its line
        bar.add_row(ProgressBar(total=max(1, whole.items), completed=whole.done, width=40))
        return Group(table(self._tally, self._price), bar, Text(self.line()))

    def line(self) -> str:
        """The progress on one line."""
        whole, elapsed = self._tally.all, time.monotonic() - self._began
        parts = [f"{whole.done:,} of {whole.items:,} done"]
        if whole.failed:
            parts.append(f"{whole.failed:,} failed")
        parts.append("tokens ?" if whole.usage.uncounted else f"{whole.usage.tokens:,} tokens")
        if self._tokens:
            parts.append(f"{self._tokens / elapsed:,.0f} tokens/s")
        if (cost := money(whole, self._price)) is not None:
            parts.append(f"{cost:,.4f} {self._price.currency}")
        parts.append(f"EM {number(whole.right.value)}")
        told = display(self._tally.meter)
        parts.append(f"{told.change} {number(whole.gain.value, signed=True, digits=told.digits)}")
        now, left = whole.done - self._done_before, whole.items - whole.done
        if now and left:
            parts.append(f"{duration(left * elapsed / now)} left")
        return ", ".join(parts)


@contextmanager
def showing(board: Board) -> "Iterator[Lines | None]":
    """Show the board while the block runs. Yields a printer of lines if there is no terminal."""
    console = err()
    if not console.is_terminal:
        lines = Lines(board)
        yield lines
        lines.print()
        return
    with Live(board, console=console, refresh_per_second=4):
        yield None


class Lines:
    """Prints the board's line when it changes, at most every `LINE_SECONDS`."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._printed = time.monotonic()
        self._last = ""

    def tick(self) -> None:
        if time.monotonic() - self._printed >= LINE_SECONDS:
            self.print()

    def print(self) -> None:
        line = self._board.line()
        if line != self._last:
            say(line, stderr=True)
        self._last, self._printed = line, time.monotonic()


def table(tally: "Tally", price: "Price") -> Grid:
    """One line for each arm."""
    told = display(tally.meter)
    figures = {
        "done": 1,
        "failed": 2,
        "EM": 3,
        told.change: 4,
        "retrievals": 8,
        "calls": 7,
        "tokens": 6,
        "cost": 5,
    }
    columns = [Column("workflow", wraps=14), *numbers(figures)]
    rows = []
    for label, row in tally.rows.items():
        cost = money(row, price)
        rows.append(
            (
                Text(plain(label)),
                f"{row.done:,}/{row.items:,}",
                f"{row.failed:,}" if row.failed else "",
                _mean(row.right.value, row.right.n, row.done),
                _mean(row.gain.value, row.gain.n, row.done, signed=True, digits=told.digits),
                f"{row.queries:,}",
                f"{row.usage.calls:,}",
                "?" if row.usage.uncounted else f"{row.usage.tokens:,}",
                "-" if cost is None else f"{cost:,.4f} {price.currency}",
            )
        )
    return Grid(columns, rows, more="`hopscope compare` has them")


def money(row: "Row", price: "Price") -> float | None:
    """The cost; None if the reader's price or its tokens are unknown."""
    return None if price.model is None else price.of(row.usage, queries=row.queries)


def duration(seconds: float) -> str:
    """As h:mm:ss or m:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _mean(value: float | None, n: int, done: int, *, signed: bool = False, digits: int = 2) -> str:
    text = number(value, signed=signed, digits=digits)
    return text if value is None or n == done else f"{text} ({n})"
