"""Tables as LaTeX, for `booktabs`; heat maps also need `colortbl`."""

from collections.abc import Iterable, Sequence

from hopscope.lab.table_forms.table import Cell, Table
from hopscope.lab.table_forms.text import cell_text
from hopscope.runtime.texts.storable import line
from hopscope.runtime.types import Measurement

ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "Δ": r"$\Delta$",
        "τ": r"$\tau$",
        "ρ": r"$\rho$",  # noqa: RUF001
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)
DARKEST = 60
"""Percentage of colour in a heat map's cell with share 1."""


def latex(tables: Sequence[Table]) -> str:
    return "\n".join(_table(table) for table in tables)


def _table(table: Table) -> str:
    numbers = "r" * (len(table.columns) - 1)
    body = "\n".join(
        _row(_cell(table, name, row[name]) if name in row else "" for name in table.columns)
        for row in table.rows
    )
    caption = ". ".join([table.title, *table.notes])
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_escape(caption)}}}",
            rf"\begin{{tabular}}{{l{numbers}}}",
            r"\toprule",
            _row(_escape(heading) for heading in table.columns.values()),
            r"\midrule",
            *([body] if body else []),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _cell(table: Table, name: str, cell: Cell) -> str:
    value, interval, coverage = cell_text(cell, table.digits.get(name, 2))
    small = " ".join(part for part in (interval, coverage) if part)
    # LaTeX takes a bracket or a star after a line's end for its option.
    text = f"{{{_escape(value)}}}" if value.startswith(("[", "*")) else _escape(value)
    if small:
        text += rf" {{\scriptsize {_escape(small)}}}"
    if name in table.shaded and isinstance(cell, Measurement) and cell.value is not None:
        return rf"\cellcolor{{blue!{round(DARKEST * cell.value)}}}{text}"
    return text


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _escape(text: str) -> str:
    return line(text).translate(ESCAPES)
