"""The figures of a suite: its tables' cells by name, as scripts read them.

Invariants: a row's texts name it and its measured cells are figures, so every figure has one name,
`TABLE/ROW/COLUMN`; a figure that was not measured says why, in its record and beneath its table.
Bare numbers, such as a column of counts, are remarks and no figures.
"""

from collections.abc import Mapping, Sequence

from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.types import Measurement, Record
from hopscope.tracing.statistics.over_questions import Difference, Estimate


class Figure(Record):
    """One number of a suite."""

    value: float | None
    low: float | None = None
    """95 % interval."""
    high: float | None = None
    n: int
    """Questions, pairs or runs behind the value, as its table says."""
    reason: str | None = None
    """Why `value` is None."""
    seed: int | None = None
    estimator: str = ""
    """Method of the value or of its interval."""


def figures(tables: Sequence[Table]) -> dict[str, Figure]:
    """All figures by name.

    Raises:
        ValueError: two have one name.
    """
    found: dict[str, Figure] = {}
    for table in tables:
        for row in table.rows:
            label = _label(row)
            for column, cell in row.items():
                if not isinstance(cell, Measurement | Estimate | Difference):
                    continue
                name = "/".join(part for part in (table.name, label, column) if part)
                if name in found:
                    raise ValueError(f"two figures are called {name}")
                found[name] = figure(cell)
    return found


def figure(cell: Measurement | Estimate | Difference) -> Figure:
    """A cell's number."""
    known = cell.model_dump(include={"value", "low", "high", "reason"})
    if isinstance(cell, Measurement):
        return Figure(**known, n=cell.n, seed=cell.seed, estimator=cell.estimator)
    return Figure(**known, n=cell.measured, estimator=cell.interval)


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
        if isinstance(cell, Measurement | Estimate | Difference) and cell.reason
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
