"""Comma-separated values, with fields in quotes where they need them.

The first line names the columns, unless the columns are given as numbers. Semicolons separate where
the first line has them and no comma, as spreadsheets of many countries write them.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from hopscope.runtime.corpora.reading import Columns, Record, lines, opened, row
from hopscope.runtime.errors import CorpusError
from hopscope.runtime.json_records import LONGEST, Reading

SUFFIXES = (".csv",)


def read(path: Path, reading: Reading, columns: Columns) -> Iterator[Record]:
    # The library has one limit for all: so that it holds for nobody less than its own.
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
                raise CorpusError(
                    f"{path}, line {line}: no CSV that can be read: {error}"
                ) from None
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
