"""A plain text as one passage, titled by the file's name. `--chunk` splits long ones."""

from collections.abc import Iterator
from pathlib import Path

from hopscope.runtime.corpora.records.json_records import Reading
from hopscope.runtime.corpora.records.reading import Columns, FileRecord, whole

SUFFIXES = (".txt", ".text")


def read(path: Path, reading: Reading, columns: Columns) -> Iterator[FileRecord]:
    text = whole(path, reading)
    if text.strip():
        yield FileRecord(
            {"title": path.name.partition(".")[0] or path.name, "text": text.strip()}, 1
        )
