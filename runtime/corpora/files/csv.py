"""Comma-separated values with optional quotes around fields.

The first line names the columns, unless the user gives columns by number. If the first line has
semicolons and no comma, semicolons separate, as in spreadsheets of many countries.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from hopscope.runtime.corpora.records.json_records import LONGEST, Reading
from hopscope.runtime.corpora.records.reading import Columns, FileRecord, lines, opened, row
from hopscope.runtime.errors import CorpusError

SUFFIXES = (".csv",)


def read(path: Path, reading: Reading, columns: Columns) -> Iterator[FileRecord]:
    # The library has one limit for the whole process: it is only raised, never lowered.
    csv.field_size_limit(max(LONGEST, csv.field_size_limit()))
    names: list[str] | None = None
    with opened(path, reading) as stream:
        text = lines(path, stream)
        first = next(text, "")
        comma = ";" if ";" in first and "," not in first else ","
        rows = csv.reader(_again(first, text), delimiter=comma)
        while True:
            line = rows.line_num + 1
            try:
                values = next(rows, None)
            except csv.Error as error:
                raise CorpusError(f"{path}, line {line}: the CSV cannot be read: {error}") from None
            if values is None:
                return
            if not values:
                continue
            if names is None and not columns.positions:
                names = values
                continue
            if (record := row(path, reading, line, names, values)) is not None:
                yield record


def _again(first: str, text: Iterator[str]) -> Iterator[str]:
    yield first
    yield from text
