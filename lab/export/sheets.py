"""Rows as files: CSV, JSON lines or Parquet.

Invariant: a file is complete or missing; an older file stays until the new one replaces it.
"""

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TextIO

from hopscope.lab.export.rows import Columns, ColumnType, Row
from hopscope.lab.table_forms.formulas import harmless
from hopscope.runtime.errors import MissingExtraError, UsageError

Form = Literal["csv", "jsonl", "parquet"]
Write = Callable[[Row], None]
BATCH = 5000
"""Rows per group in Parquet."""


@contextmanager
def sheet(path: Path, columns: Columns, form: Form, *, raw: bool = False) -> Iterator[Write]:
    """Open a file for rows. Yields the function that adds a row.

    In CSV, texts that a spreadsheet would execute as formulas get `'` in front, unless `raw`.

    Raises:
        MissingExtraError: Parquet without the extra `parquet`.
        UsageError: the file cannot be written.
    """
    forms: Mapping[Form, Callable[[Path, Columns], AbstractContextManager[Write]]] = {
        "csv": partial(_csv, raw=raw),
        "jsonl": _jsonl,
        "parquet": _parquet,
    }
    with whole(path) as unfinished, forms[form](unfinished, columns) as write:
        yield write


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A temporary path, which replaces the file at the end of the block.

    Raises:
        UsageError: the file cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield unfinished
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None


@contextmanager
def _csv(path: Path, columns: Columns, *, raw: bool) -> Iterator[Write]:
    def cell(value: Any, kind: ColumnType) -> Any:
        written = _as_text(value, kind)
        return harmless(written) if isinstance(written, str) and not raw else written

    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(_Lines(file), list(columns), lineterminator="\r\n")
        writer.writeheader()
        yield lambda row: writer.writerow(
            {name: cell(row[name], kind) for name, kind in columns.items()}
        )


class _Lines:
    """Ends lines with a line feed alone. With that as its own option, `csv` does not quote a text
    with a carriage return, and programs end the row there."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, row: str) -> int:
        return self._file.write(row.removesuffix("\r\n") + "\n")


@contextmanager
def _jsonl(path: Path, columns: Columns) -> Iterator[Write]:
    with path.open("w", encoding="utf-8") as file:
        yield lambda row: print(json.dumps(row, ensure_ascii=False, allow_nan=False), file=file)


@contextmanager
def _parquet(path: Path, columns: Columns) -> Iterator[Write]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("Parquet", "parquet") from None
    types: Mapping[ColumnType, Any] = {
        "text": pyarrow.string(),
        "integer": pyarrow.int64(),
        "number": pyarrow.float64(),
        "flag": pyarrow.bool_(),
        "texts": pyarrow.list_(pyarrow.string()),
        "json": pyarrow.string(),
    }
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
    rows: list[Row] = []

    with parquet.ParquetWriter(path, schema) as writer:

        def flush() -> None:
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
            rows.clear()

        def write(row: Row) -> None:
            rows.append({name: _plain(row[name], kind) for name, kind in columns.items()})
            if len(rows) >= BATCH:
                flush()

        yield write
        flush()


def _plain(value: Any, kind: ColumnType) -> Any:
    if value is None:
        return None
    if kind == "json":
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return list(value) if kind == "texts" else value


def _as_text(value: Any, kind: ColumnType) -> Any:
    """Lists and objects as JSON; nothing for None."""
    if value is not None and kind in ("json", "texts"):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return value


def write_lines(path: Path, rows: Sequence[Row]) -> None:
    """A file of JSON lines.

    Raises:
        UsageError: it cannot be written.
    """
    with sheet(path, {}, "jsonl") as write:
        for row in rows:
            write(row)
