"""Parquet, read batch by batch (extra `parquet`)."""

from collections.abc import Iterator
from pathlib import Path

from hopscope.runtime.corpora.records.json_records import Reading
from hopscope.runtime.corpora.records.reading import Columns, FileRecord
from hopscope.runtime.errors import CorpusError, MissingExtraError

SUFFIXES = (".parquet",)
ROWS = 1000
"""Rows of a batch."""


def read(path: Path, reading: Reading, columns: Columns) -> Iterator[FileRecord]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("Parquet", "parquet") from None
    number = 0
    before, size = reading.bytes_read, path.stat().st_size
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=ROWS):
                for value in batch.to_pylist():
                    number += 1
                    yield FileRecord(value, number, "row")
                reading.bytes_read = before + size * number // file.metadata.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        raise CorpusError(f"{path}, after row {number}: Parquet cannot be read: {error}") from None
    reading.bytes_read = before + size
