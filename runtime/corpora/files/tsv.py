"""Tab-separated values, one record per line: DPR's psgs_w100.tsv, MS MARCO's collection.tsv.

The first line names the columns, unless the user gives columns by number. A field that begins and
ends with a quote loses both, and doubled quotes inside become one; other quotes are text.
"""

from collections.abc import Iterator
from pathlib import Path

from hopscope.runtime.corpora.records.json_records import Reading
from hopscope.runtime.corpora.records.reading import Columns, FileRecord, lines, opened, row

SUFFIXES = (".tsv",)


def read(path: Path, reading: Reading, columns: Columns) -> Iterator[FileRecord]:
    names: list[str] | None = None
    with opened(path, reading) as stream:
        for number, line in enumerate(lines(path, stream), 1):
            if not line.strip():
                continue
            values = [_unquoted(field) for field in line.rstrip("\r\n").split("\t")]
            if names is None and not columns.positions:
                names = values
                continue
            if (record := row(path, reading, number, names, values)) is not None:
                yield record


def _unquoted(field: str) -> str:
    if len(field) > 1 and field[0] == field[-1] == '"':
        return field[1:-1].replace('""', '"')
    return field
