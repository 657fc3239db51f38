"""Folders of the `datasets` library's `save_to_disk`: Arrow streams (extra `parquet`).

pyarrow reads them batch by batch, without `datasets` itself. All splits of a dictionary are read,
in its order.
"""

from collections.abc import Iterator
from pathlib import Path

from hopscope.runtime.corpora.records.json_records import Reading
from hopscope.runtime.corpora.records.reading import Columns, FileRecord
from hopscope.runtime.errors import CorpusError, MissingExtraError
from hopscope.runtime.texts.literals import json_value

SUFFIXES = ()
STATE = "state.json"
SPLITS = "dataset_dict.json"


def matches(folder: Path) -> bool:
    """Whether `save_to_disk` wrote the folder."""
    return (folder / STATE).is_file() or (folder / SPLITS).is_file()


def read(path: Path, reading: Reading, columns: Columns) -> Iterator[FileRecord]:
    if not matches(path):
        raise CorpusError(f"{path} has neither {STATE} nor {SPLITS}: give a folder of save_to_disk")
    if (path / SPLITS).is_file():
        for split in _listed(path / SPLITS, "splits"):
            yield from _split(path / split, reading)
    else:
        yield from _split(path, reading)


def _split(folder: Path, reading: Reading) -> Iterator[FileRecord]:
    try:
        import pyarrow
        from pyarrow import ipc
    except ImportError:
        raise MissingExtraError("Arrow", "parquet") from None
    number = 0
    for file in _listed(folder / STATE, "_data_files"):
        path = folder / file
        try:
            with pyarrow.memory_map(str(path)) as source, ipc.open_stream(source) as stream:
                for batch in stream:
                    for value in batch.to_pylist():
                        number += 1
                        yield FileRecord(value, number, f"{file} of {folder.name}, row")
            reading.bytes_read += path.stat().st_size
        except (pyarrow.ArrowException, OSError) as error:
            raise CorpusError(f"{path}, after row {number}: cannot be read: {error}") from None


def _listed(path: Path, key: str) -> list[str]:
    """Names of files or folders inside the folder of `path`."""
    try:
        listed = json_value(path.read_bytes())[key]
        names = [str(each["filename"] if isinstance(each, dict) else each) for each in listed]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise CorpusError(f"{path} cannot be read: {error}; save the dataset again") from None
    if outside := [name for name in names if Path(name).name != name]:
        raise CorpusError(f"{path} names {outside[0]!r}, which is not inside its folder")
    return names
