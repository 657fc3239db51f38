"""A table as data: rows of cells under headings. The other modules here format it.

The fields are a public contract, because scripts read them.
"""

from pydantic import Field

from hopscope.runtime.types import Measurement, Record
from hopscope.tracing.statistics.over_questions import Difference, Estimate

Cell = str | int | float | Estimate | Difference | Measurement | None


class Table(Record):
    """Rows by column. A row may lack columns that do not apply to it."""

    name: str
    """The component that made it, with a suffix if it makes several."""
    title: str
    columns: dict[str, str]
    """Headings in order, by the key of the rows' cells."""
    rows: tuple[dict[str, Cell], ...]
    notes: tuple[str, ...] = ()
    """Notes below the table: methods, omissions."""
    digits: dict[str, int] = Field(default_factory=dict)
    """Decimals of a column's figures, if not two."""
    shaded: tuple[str, ...] = ()
    """Columns that form a heat map of shares."""


def stacked(parts: "list[tuple[str, list[Table]]]", by: str) -> list[Table]:
    """The tables of several strata, merged by name, with the stratum as first column."""
    found: dict[str, list[tuple[str, Table]]] = {}
    for stratum, tables in parts:
        for table in tables:
            found.setdefault(table.name, []).append((stratum, table))
    return [
        Table(
            name=name,
            title=same[0][1].title,
            columns={by: by} | {k: v for _, table in same for k, v in table.columns.items()},
            rows=tuple({by: stratum, **row} for stratum, table in same for row in table.rows),
            notes=_notes(same, by),
            digits={k: v for _, table in same for k, v in table.digits.items()},
            shaded=tuple(dict.fromkeys(key for _, table in same for key in table.shaded)),
        )
        for name, same in found.items()
    ]


def _notes(same: "list[tuple[str, Table]]", by: str) -> tuple[str, ...]:
    """All notes once; a note that does not apply to all strata names its stratum."""
    everywhere = set.intersection(*(set(table.notes) for _, table in same))
    named = (
        note if note in everywhere else f"{by} {stratum}: {note}"
        for stratum, table in same
        for note in table.notes
    )
    return tuple(dict.fromkeys(named))


def methods(*used: str) -> tuple[str, ...]:
    """A note with the interval methods, each once."""
    named = list(dict.fromkeys(method for method in used if method))
    return (f"95 % intervals: {'; '.join(named)}",) if named else ()
