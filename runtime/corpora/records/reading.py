"""Shared by file formats and layouts: records, drafts of passages, and the text of files."""

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from hopscope.runtime.corpora.records.json_records import GZIP_MAGIC, LONGEST, Reading
from hopscope.runtime.errors import CorpusError, UsageError

ESCAPED = re.compile("[\udc80-\udcff]")
"""Bytes that are not UTF-8, as Python's `surrogateescape` decodes them: 0xdc00 too high."""


class MalformedRecordError(ValueError):
    """A record does not fit its layout; the message names the field and the remedy."""


class FileRecord(NamedTuple):
    """One record of a file."""

    value: Mapping[str, Any]
    number: int
    """Its line, row or page, from 1."""
    unit: str = "line"
    """The unit of `number`."""


class PassageDraft(NamedTuple):
    """A passage as its source gives it."""

    text: str
    title: str = ""
    id: str = ""
    """The id in the source, or empty."""


@dataclass(frozen=True)
class Columns:
    """The fields of a passage, as the user names them."""

    text: str = ""
    title: str = ""
    id: str = ""

    def __post_init__(self) -> None:
        if (self.title or self.id) and not self.text:
            raise UsageError("--title and --id go with --text, the field that holds the text")

    @property
    def given(self) -> dict[str, str]:
        """The named fields by role: text, title, id."""
        named = {"id": self.id, "title": self.title, "text": self.text}
        return {purpose: name for purpose, name in named.items() if name}

    @property
    def positions(self) -> bool:
        """Whether the fields are numbers from 1, for tables without a header line."""
        return bool(self.given) and all(name.isdecimal() for name in self.given.values())


def fail(path: Path, record: FileRecord, problem: str) -> CorpusError:
    """The error for a problem in a record."""
    return CorpusError(f"{path}, {record.unit} {record.number}: {problem}")


@contextmanager
def opened(path: Path, reading: Reading) -> Iterator[BinaryIO]:
    """The bytes of a file, unzipped if it is gzipped.

    Raises:
        CorpusError: the file cannot be read, or is damaged.
    """
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == GZIP_MAGIC
            file.seek(0)
            with gzip.open(file) if zipped else nullcontext(file) as unzipped:
                yield cast(BinaryIO, unzipped)
            reading.bytes_read += path.stat().st_size
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorpusError(f"{path} is a damaged gzip file: {error}") from None
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}") from None


def sound(value: Mapping[str, Any]) -> None:
    """
    Raises:
        MalformedRecordError: a text has bytes that are not UTF-8, which `lines` passes through.
    """
    for each in value.values():
        if isinstance(each, str) and (match := ESCAPED.search(each)):
            byte = ord(match.group()) - 0xDC00
            raise MalformedRecordError(f"byte 0x{byte:02x} is not UTF-8; convert the file to UTF-8")


def row(
    path: Path, reading: Reading, line: int, names: list[str] | None, values: list[str]
) -> FileRecord | None:
    """The record of a table's row, with its columns by name, or by number if `names` is None. None
    if the row is broken and skipped."""
    named = names or [str(number) for number in range(1, len(values) + 1)]
    record = FileRecord(dict(zip(named, values, strict=False)), line)
    try:
        if len(values) != len(named):
            raise MalformedRecordError(
                f"{len(values)} fields; the first line names {len(named)} columns"
            )
        sound(record.value)
    except MalformedRecordError as error:
        reading.let_pass(fail(path, record, str(error)))
        return None
    return record


def lines(path: Path, stream: BinaryIO) -> Iterator[str]:
    """Lines of text with their line ends; bytes that are not UTF-8 stay as `ESCAPED`.

    Raises:
        CorpusError: a line is too long for one record.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="surrogateescape")
    number = 0
    while data := stream.readline(LONGEST + 1):
        number += 1
        if len(data) > LONGEST:
            problem = f"the line is longer than {LONGEST >> 20} MiB: split it"
            raise CorpusError(f"{path}, line {number}: {problem}")
        yield decoder.decode(data)
    if rest := decoder.decode(b"", final=True):
        yield rest


def whole(path: Path, reading: Reading) -> str:
    """The text of a file that is one record.

    Raises:
        CorpusError: the file is not UTF-8, or too long.
    """
    with opened(path, reading) as stream:
        data = stream.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise CorpusError(f"{path} is longer than {LONGEST >> 20} MiB: split it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{data[error.start]:02x}"
        problem = f"{byte} is not UTF-8; convert the file to UTF-8"
        raise CorpusError(f"{path}, line {line}: {problem}") from None
