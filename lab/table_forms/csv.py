"""Tables as CSV with all digits: a figure has a column for each of its parts.

An empty line separates tables; the first column names the table.
"""

import csv
from collections.abc import Sequence
from io import StringIO

from hopscope.lab.table_forms.formulas import harmless
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.texts.storable import line
from hopscope.runtime.types import Measurement
from hopscope.tracing.statistics.over_questions import Difference, Estimate

PARTS: dict[type[Estimate | Difference | Measurement], tuple[str, ...]] = {
    Estimate: ("low", "high", "measured", "total", "interval", "reason"),
    Difference: ("low", "high", "measured", "total", "interval", "test", "reason"),
    Measurement: ("low", "high", "n", "estimator", "reason"),
}


def comma_separated(tables: Sequence[Table]) -> str:
    return "\n".join(_table(table) for table in tables)


def _table(table: Table) -> str:
    parts = {name: _parts([row.get(name) for row in table.rows]) for name in table.columns}
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    heads = [head for name in table.columns for head in (name, *_heads(name, parts[name]))]
    writer.writerow(["table", *heads])
    for row in table.rows:
        cells = [text for name in table.columns for text in _texts(row.get(name), parts[name])]
        writer.writerow([table.name, *cells])
    return file.getvalue()


def _parts(cells: Sequence[Cell]) -> tuple[str, ...]:
    """The parts of the figures in a column, which are all of one kind."""
    kinds = {type(cell) for cell in cells}
    return next((parts for kind, parts in PARTS.items() if kind in kinds), ())


def _heads(name: str, parts: Sequence[str]) -> list[str]:
    return [f"{name}_{part}" for part in parts]


def _texts(cell: Cell, parts: Sequence[str]) -> list[str]:
    if isinstance(cell, Estimate | Difference | Measurement):
        return [_text(getattr(cell, part, None)) for part in ("value", *parts)]
    return [_text(cell), *("" for _ in parts)]


def _text(value: Cell) -> str:
    if isinstance(value, str):
        return harmless(line(value))
    return "" if value is None else str(value)
