"""Parquet, read batch by batch (extra `parquet`)."""

from collections.abc import Iterator
from pathlib import Path

from hopscope.runtime.corpora.reading import Columns, Record
from hopscope.runtime.errors import CorpusError, MissingExtra
from hopscope.runtime.json_records import Reading

SUFFIXES = (".parquet",)
ROWS = 1000
"""Held at a time."""


def read(path: Path, reading: Reading, columns: Columns) -> Iterator[Record]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("Parquet", "parquet") from None
    number = 0
    before, size = reading.bytes_read, path.stat().st_size
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=ROWS):
                for value in batch.to_pylist():
                    number += 1
                    yield Record(value, number, "row")
                reading.bytes_read = before + size * number // file.metadata.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        raise CorpusError(f"{path}, after row {number}: no Parquet to be read: {error}") from None
    reading.bytes_read = before + size
