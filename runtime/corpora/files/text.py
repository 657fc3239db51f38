"""A plain text, which is one passage; its title is the file's name. See `--chunk` for long ones."""

from collections.abc import Iterator
from pathlib import Path

from hopscope.runtime.corpora.reading import Columns, Record, whole
from hopscope.runtime.json_records import Reading

SUFFIXES = (".txt", ".text")


def read(path: Path, reading: Reading, columns: Columns) -> Iterator[Record]:
    text = whole(path, reading)
    if text.strip():
        yield Record({"title": path.name.partition(".")[0] or path.name, "text": text.strip()}, 1)
