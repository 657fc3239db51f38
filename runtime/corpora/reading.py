"""What file formats and layouts share: records, drafts of passages, and the text of files."""

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from hopscope.runtime.errors import CorpusError, UsageError
from hopscope.runtime.json_records import GZIP_MAGIC, LONGEST, Reading

ESCAPED = re.compile("[\udc80-\udcff]")
"""How Python's `surrogateescape` writes bytes that are not UTF-8; they are 0xdc00 too high."""


class Malformed(ValueError):
    """A record does not have its layout; says which field and what to do."""


class Record(NamedTuple):
    """One record of a file."""

    value: Mapping[str, Any]
    number: int
    """Its line, row or page, from 1."""
    unit: str = "line"
    """What `number` counts."""


class Draft(NamedTuple):
    """A passage as its source tells it."""

    text: str
    title: str = ""
    id: str = ""
    """Empty where the source has none."""


@dataclass(frozen=True)
class Columns:
    """The fields of records that hold a passage, where the user names them."""

    text: str = ""
    title: str = ""
    id: str = ""

    def __post_init__(self) -> None:
        if (self.title or self.id) and not self.text:
            raise UsageError("--title and --id go with --text, the field that holds the text")

    @property
    def given(self) -> dict[str, str]:
        """Names by what they are for."""
        named = {"id": self.id, "title": self.title, "text": self.text}
        return {purpose: name for purpose, name in named.items() if name}

    @property
    def positions(self) -> bool:
        """Whether they are numbers from 1, as tables without a header line need them."""
        return bool(self.given) and all(name.isdecimal() for name in self.given.values())


def fail(path: Path, record: Record, problem: str) -> CorpusError:
    """The error for something wrong in a record."""
    return CorpusError(f"{path}, {record.unit} {record.number}: {problem}")


@contextmanager
def opened(path: Path, reading: Reading) -> Iterator[BinaryIO]:
    """The bytes of a file, unzipped if it is gzipped.

    Raises:
        CorpusError: it cannot be read, or is damaged.
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
        Malformed: a text has bytes that are not UTF-8, as `lines` leaves them.
    """
    for each in value.values():
        if isinstance(each, str) and (found := ESCAPED.search(each)):
            byte = ord(found.group()) - 0xDC00
            raise Malformed(f"byte 0x{byte:02x} is not UTF-8; convert the file to UTF-8")


def row(
    path: Path, reading: Reading, line: int, names: list[str] | None, values: list[str]
) -> Record | None:
    """The record of a table's row, its columns by name, or by number where `names` is None; None
    if it is broken and left out."""
    named = names or [str(number) for number in range(1, len(values) + 1)]
    record = Record(dict(zip(named, values, strict=False)), line)
    try:
        if len(values) != len(named):
            raise Malformed(f"{len(values)} fields; the first line names {len(named)} columns")
        sound(record.value)
    except Malformed as error:
        reading.let_pass(fail(path, record, str(error)))
        return None
    return record


def lines(path: Path, stream: BinaryIO) -> Iterator[str]:
    """Lines of text with their ends; bytes that are not UTF-8 stay as `ESCAPED`.

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
        CorpusError: it is not UTF-8, or too long.
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
