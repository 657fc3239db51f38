"""The figures of a suite: its tables' cells by name, as scripts read them.

Invariants: a row's texts name it and its measured cells are figures, so every figure has one name,
`TABLE/ROW/COLUMN`; an unmeasured figure has a reason, in its record and below its table. Plain
numbers, such as a column of counts, are no figures.
"""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.types import Measurement
from hopscope.tracing.statistics.over_questions import Statistic

FIELDS = ("value", "low", "high", "n", "reason", "seed", "estimator")
"""The entries of a figure's JSON."""


def figures(tables: Sequence[Table]) -> dict[str, Measurement]:
    """All figures by name.

    Raises:
        ValueError: two have one name.
    """
    found: dict[str, Measurement] = {}
    for table in tables:
        for row in table.rows:
            label = _label(row)
            for column, cell in row.items():
                if not isinstance(cell, Measurement | Statistic):
                    continue
                name = "/".join(part for part in (table.name, label, column) if part)
                if name in found:
                    raise ValueError(f"two figures are called {name}")
                found[name] = figure(cell)
    return found


def figure(cell: Measurement | Statistic) -> Measurement:
    """A cell's number: `n` counts questions, pairs or runs, as its table says."""
    if isinstance(cell, Measurement):
        return cell
    known = cell.model_dump(include={"value", "low", "high", "reason"})
    return Measurement(**known, n=cell.measured, estimator=cell.interval)


def as_json(figure: Measurement) -> dict[str, JsonValue]:
    """The figure as scripts read it."""
    return {name: getattr(figure, name) for name in FIELDS}


def table(
    name: str,
    title: str,
    columns: Mapping[str, str],
    rows: Sequence[Mapping[str, Cell]],
    *notes: str,
    digits: int = 3,
) -> Table:
    """A table of figures, with the reasons for missing ones beneath it.

    Args:
        columns: headings by key; the first column names the rows.
        digits: decimals of all figures.
    """
    missing = dict.fromkeys(
        f"{_label(row)}: {cell.reason}"
        for row in rows
        for cell in row.values()
        if isinstance(cell, Measurement | Statistic) and cell.reason
    )
    return Table(
        name=name,
        title=title,
        columns=dict(columns),
        rows=tuple(dict(row) for row in rows),
        notes=(*notes, *missing),
        digits=dict.fromkeys(columns, digits),
    )


def _label(row: Mapping[str, Cell]) -> str:
    return " ".join(cell for cell in row.values() if isinstance(cell, str))
