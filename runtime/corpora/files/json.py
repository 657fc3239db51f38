"""JSON lines, or one JSON list of objects."""

from collections.abc import Iterator
from pathlib import Path

from hopscope.runtime.corpora.records.json_records import JsonRecords, Reading
from hopscope.runtime.corpora.records.reading import Columns, FileRecord

SUFFIXES = (".jsonl", ".json", ".ndjson")


def read(path: Path, reading: Reading, columns: Columns) -> Iterator[FileRecord]:
    for line, value in JsonRecords(path, reading):
        yield FileRecord(value, line)
