"""Tables as GitHub's Markdown."""

import re
from collections.abc import Iterable, Sequence

from hopscope.lab.table_forms.table import Table
from hopscope.lab.table_forms.text import cell_text
from hopscope.runtime.texts.storable import line

MARKS = ("\\", "`", "*", "_", "<", ">", "|", "~", "](", "][", "]:", ":/", "www.")
"""Each gets a backslash before its last character. Brackets alone make no link, and intervals are
easier to read without backslashes."""
REFERENCES = re.compile(r"@|#(?=\w)|\bGH-(?=\d)", re.IGNORECASE)
"""GitHub makes a link of a@b.c, a mention of @name and a reference of #1 and GH-1, wherever they
stand and whether or not they are escaped. A comment that is not shown parts them."""


def markdown(tables: Sequence[Table]) -> str:
    return "\n".join(_table(table) for table in tables)


def _table(table: Table) -> str:
    lines = [f"**{_escape(table.title)}**", "", _row(map(_escape, table.columns.values()))]
    lines.append(_row("---" for _ in table.columns))
    for row in table.rows:
        cells = (
            _escape(cell_text(row[name], table.digits.get(name, 2)).line) if name in row else ""
            for name in table.columns
        )
        lines.append(_row(cells))
    lines += ["", *(f"{_escape(note)}  " for note in table.notes)]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    """The text without emphasis, HTML, image, mention or link, not even of a bare address."""
    for mark in MARKS:
        text = text.replace(mark, f"{mark[:-1]}\\{mark[-1]}")
    return REFERENCES.sub(r"\g<0><!-- -->", line(text))
