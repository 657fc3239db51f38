"""Tables that fit the terminal: columns that identify rows stay, others go or move below.

Invariant: no cell is cut. A column is shown whole, or left out with a note.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

Cell = str | Text

GAP = 2
"""Blank characters between columns."""
LEAST = 8
"""Characters that every column which wraps keeps on a very narrow terminal."""


@dataclass(frozen=True)
class Column:
    """A column and its behaviour on a narrow terminal."""

    heading: Cell
    rank: int = 0
    """Columns of the highest rank are left out first. Columns of rank 0 identify rows and stay."""
    right: bool = False
    """Whether it is aligned to the right."""
    wraps: int | None = None
    """Characters to which its text may be broken into lines; None keeps each line whole."""


def numbers(ranks: Mapping[str, int]) -> list[Column]:
    """Columns of numbers: their headings with their ranks."""
    return [Column(heading, rank, right=True) for heading, rank in ranks.items()]


@dataclass(frozen=True)
class Grid:
    """Rows under headings, drawn by rich in the available width."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    stacked: bool = False
    """Whether columns that do not fit follow below, beside those of rank 0 again."""
    headed: bool = True
    more: str = "--json has them"
    """The hint on columns left out."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        shown = self._fitting(range(len(self.columns)), width)
        yield self._table(shown, width)
        left = [place for place in range(len(self.columns)) if place not in shown]
        if not self.stacked and left:
            names = ", ".join(_text(self.columns[place].heading).plain for place in left)
            yield Text(f"left out at {width} columns: {names}; {self.more}", style="dim")
        kept = [place for place in shown if self.columns[place].rank == 0]
        while self.stacked and left:
            shown = self._fitting([*kept, *left], width)
            if len(shown) == len(kept):  # not one fits beside them: it gets lines of its own
                shown = [*kept, left[0]]
            yield Text("")
            yield self._table(shown, width)
            left = [place for place in left if place not in shown]

    def _fitting(self, places: Sequence[int], width: int) -> list[int]:
        """The columns that stay, in order."""
        shown = list(places)
        while self._least(shown) > width:
            spare = [place for place in shown if self.columns[place].rank > 0]
            if not spare:
                break
            shown.remove(max(spare, key=lambda place: (self.columns[place].rank, place)))
        return shown

    def _least(self, places: Sequence[int]) -> int:
        return sum(map(self._narrowest, places)) + GAP * max(0, len(places) - 1)

    def _narrowest(self, place: int) -> int:
        wraps = self.columns[place].wraps
        return self._natural[place] if wraps is None else min(wraps, self._natural[place])

    @cached_property
    def _natural(self) -> list[int]:
        """The width of each column without line breaks; computed once, as rows may be many."""
        headings = [[column.heading for column in self.columns]] if self.headed else []
        return [
            max((_width(row[place]) for row in [*headings, *self.rows]), default=0)
            for place in range(len(self.columns))
        ]

    def _widths(self, places: Sequence[int], width: int) -> dict[int, int]:
        """The width of each column: its natural one, or for wrapping ones a share of the rest."""
        natural = {place: self._natural[place] for place in places}
        widths = {place: self._narrowest(place) for place in places}
        # On a very narrow terminal the wrapping columns shrink, the widest first.
        wrapping = [place for place in places if self.columns[place].wraps is not None]
        while sum(widths.values()) + GAP * (len(places) - 1) > width:
            broad = max(wrapping, key=lambda place: widths[place], default=None)
            if broad is None or widths[broad] <= LEAST:
                break
            widths[broad] -= 1
        room = width - sum(widths.values()) - GAP * (len(places) - 1)
        while room > 0 and (short := [p for p in wrapping if widths[p] < natural[p]]):
            widths[max(short, key=lambda place: natural[place] - widths[place])] += 1
            room -= 1
        return widths

    def _table(self, places: Sequence[int], width: int) -> Table:
        found = Table(
            box=None,
            show_header=self.headed,
            header_style="bold",
            pad_edge=False,
            padding=(0, GAP, 0, 0),
        )
        widths = self._widths(places, width)
        for place in places:
            column = self.columns[place]
            found.add_column(
                column.heading,
                justify="right" if column.right else "left",
                width=widths[place],
                overflow="fold",
            )
        for row in self.rows:
            found.add_row(*(row[place] for place in places))
        return found


def _text(cell: Cell) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def _width(cell: Cell) -> int:
    """The width of its longest line."""
    text = cell.plain if isinstance(cell, Text) else cell
    return max(map(cell_len, text.split("\n")))
