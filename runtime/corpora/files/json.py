"""JSON lines, or one JSON list of objects."""

from collections.abc import Iterator
from pathlib import Path

from hopscope.runtime.corpora.reading import Columns, Record
from hopscope.runtime.json_records import JsonRecords, Reading

SUFFIXES = (".jsonl", ".json", ".ndjson")


def read(path: Path, reading: Reading, columns: Columns) -> Iterator[Record]:
    for line, value in JsonRecords(path, reading):
        yield Record(value, line)
