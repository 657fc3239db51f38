"""Prints tables on a terminal, or in another form."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from hopscope.api.views.grid import Column, Grid
from hopscope.api.views.render import note, out, plain, print_json, say

if TYPE_CHECKING:
    from hopscope.lab.table_forms.table import Cell, Table

MOST = 50
"""The most rows of a table on a terminal."""
WHOLE = 30
"""Cells of up to this many characters are not wrapped."""
WRAPS = 14
"""Headings and row labels may be wrapped to this many characters."""


def show(tables: "Sequence[Table]", form: str | None, *, console: Console | None = None) -> None:
    """Print tables as json, csv, markdown or latex; without a form, formatted for a terminal on
    `console`, by default stdout's."""
    from hopscope.lab.table_forms.csv import comma_separated
    from hopscope.lab.table_forms.latex import latex
    from hopscope.lab.table_forms.markdown import markdown

    forms: dict[str, Callable[[Sequence[Table]], str]] = {
        "csv": comma_separated,
        "markdown": markdown,
        "latex": latex,
    }
    if form == "json":
        print_json([table.model_dump(mode="json") for table in tables])
    elif form is not None:
        say(forms[form](tables).removesuffix("\n"))
    else:
        console = console or out()
        for place, table in enumerate(tables):
            if place:
                console.print()
            _show(console, table)


def _show(console: Console, table: "Table") -> None:
    console.print(Text(plain(table.title), style="bold"))
    if not table.rows:
        console.print(Text("no rows", style="dim"))
    else:
        names = list(table.columns)
        rows = [
            [_cell(table, name, row[name]) if name in row else Text("") for name in names]
            for row in table.rows[:MOST]
        ]
        heads = [Text(plain(heading), style="bold") for heading in table.columns.values()]
        telling = _telling(table)
        # A wide table with few rows is transposed.
        if _width([heads, *rows]) > console.width and len(rows) < len(heads):
            heads, *rows = (list(column) for column in zip(heads, *rows, strict=True))
            telling = 1
        console.print(_grid(heads, rows, telling))
    for line in table.notes:
        console.print(Text(plain(line), style="dim"))
    if len(table.rows) > MOST:
        note(f"{table.title}: {len(table.rows) - MOST} more rows: --json has them all")


def _telling(table: "Table") -> int:
    """The number of label columns: the first ones, up to the first with figures."""
    figures = [
        any(not isinstance(row.get(name), (str, int, type(None))) for row in table.rows)
        for name in table.columns
    ]
    return max(1, figures.index(True) if True in figures else 0)


def _grid(heads: Sequence[Text], rows: Sequence[Sequence[Text]], telling: int) -> Grid:
    """A grid of the cells; figures that do not fit the terminal's width follow below."""
    columns = []
    for place, (head, *cells) in enumerate(zip(heads, *rows, strict=True)):
        # Figures are never wrapped; questions and answers may be.
        least = min(_longest([head]), WRAPS)
        wraps = max(least, min(_longest(cells), WHOLE if place >= telling else WRAPS))
        columns.append(Column(head, rank=int(place >= telling), wraps=wraps))
    return Grid(columns, rows, stacked=True)


def _width(rows: Sequence[Sequence[Text]]) -> int:
    """The width of the table in characters, with long cells wrapped."""
    return sum(min(WHOLE, _longest(column)) + 2 for column in zip(*rows, strict=True))


def _longest(cells: Sequence[Text]) -> int:
    return max((len(line) for cell in cells for line in cell.plain.split("\n")), default=0)


def _cell(table: "Table", name: str, cell: "Cell") -> Text:
    from hopscope.lab.table_forms.text import cell_text
    from hopscope.runtime.types import Measurement

    value, interval, coverage = cell_text(cell, table.digits.get(name, 2))
    text = Text(value)
    if coverage:
        text.append(f" {coverage}", style="dim")
    if interval:
        text.append(f"\n{interval}", style="dim")
    if name in table.shaded and isinstance(cell, Measurement) and cell.value is not None:
        blue = round(60 * cell.value)
        text.stylize(f"on rgb({20 - blue // 4},{30},{50 + 2 * blue})")
    return text
