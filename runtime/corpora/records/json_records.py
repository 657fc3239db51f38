"""Reads JSON objects from a file one at a time: JSON lines, one JSON list, or objects that stretch
over lines, as indented ones do; plain or gzipped.

Memory holds one object of at most `LONGEST` bytes and one block of text, however long the file
is, a list on a single line included. Each problem is a `CorpusError` with the file and the line.
With `skip` the problem is noted, and reading continues at the next record whose beginning is known.
"""

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from hopscope.runtime.errors import CorpusError
from hopscope.runtime.texts.literals import json_at, json_value
from hopscope.runtime.texts.storable import storable_json

BLOCK = 1 << 16
LONGEST = 1 << 26
"""The longest record in bytes, or in characters within a list: 64 MiB. Three gigabytes of one
letter are three megabytes when gzipped."""
_VISIBLE = re.compile(r"\S")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a surrogate pair in JSON; two that belong together spell a character."""
_ESCAPED = re.compile("[\udc80-\udcff]")
"""Bytes that are not UTF-8, as Python's `surrogateescape` decodes them: 0xdc00 too high."""
GZIP_MAGIC = b"\x1f\x8b"
NOTED = 100
"""Most errors of skipped records that are kept; further ones are only counted."""
# An error this near to the end of the block may only mean that the rest was not read yet.
_TAIL = 16


class JsonObject(NamedTuple):
    """An object and its line."""

    line: int
    """The line of its beginning, from 1."""
    value: dict[str, Any]


@dataclass
class Reading:
    """One reading of one or more files: its skipped and mended records, and its progress."""

    skip: bool = False
    """Whether to skip and note broken records instead of refusing them."""
    skipped: int = 0
    problems: list[CorpusError] = field(default_factory=list)
    """The errors of the first 100 skipped records."""
    replaced: int = 0
    """Records with half of a surrogate pair, which U+FFFD replaces."""
    bytes_read: int = 0
    """Bytes of the files as stored on disk."""

    def let_pass(self, error: CorpusError) -> None:
        """Note the error of a record that is skipped; without `skip` raise it."""
        if not self.skip:
            raise error from None
        self.skipped += 1
        if self.skipped <= NOTED:
            self.problems.append(error)


class JsonRecords:
    """The objects of a file. It can be iterated again; `reading` counts bytes for progress bars."""

    def __init__(self, path: Path, reading: Reading | None = None) -> None:
        """
        Args:
            reading: the reading that this file is part of; without one, broken records are refused.
        """
        self.path = path
        self.reading = reading or Reading()
        try:
            if not path.is_file():
                # Which forms are read is the caller's to say: questions are TSV and TREC, too.
                what = "is a folder: name a file in it" if path.is_dir() else "does not exist"
                check = "" if path.is_dir() else ": check the path"
                raise CorpusError(f"{path} {what}{check}")
            self.size = path.stat().st_size
            with path.open("rb") as file:
                self._zipped = file.read(2) == GZIP_MAGIC
        except OSError as error:
            raise CorpusError(f"{path} cannot be read: {error.strerror}") from None

    def fail(self, line: int, problem: str) -> CorpusError:
        """The error for a problem on a line."""
        return CorpusError(f"{self.path}, line {line}: {problem}")

    def __iter__(self) -> Iterator[JsonObject]:
        for found in self.each():
            if isinstance(found, CorpusError):
                self.reading.let_pass(found)
            else:
                yield found

    def each(self) -> Iterator[JsonObject | CorpusError]:
        """The objects, and in their places the errors of records that are broken.

        Raises:
            CorpusError: the rest of the file cannot be read.
        """
        before = self.reading.bytes_read
        try:
            with (
                self.path.open("rb") as file,
                gzip.open(file) if self._zipped else nullcontext(file) as unzipped,
            ):
                start = unzipped.peek(BLOCK).removeprefix(codecs.BOM_UTF8).lstrip()
                read = self._list if start.startswith(b"[") else self._lines
                if start.partition(b"\n")[0].strip() == b"{":
                    read = self._spread
                for found in read(cast(BinaryIO, unzipped)):
                    self.reading.bytes_read = before + file.tell()
                    yield found
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise CorpusError(f"{self.path} is a damaged gzip file: {error}") from None
        except OSError as error:
            raise CorpusError(f"{self.path} cannot be read: {error.strerror}") from None
        self.reading.bytes_read = before + self.size

    def _lines(self, stream: BinaryIO) -> Iterator[JsonObject | CorpusError]:
        for number in count(1):
            data = stream.readline(LONGEST + 1)
            if not data:
                return
            try:
                if len(data) > LONGEST:
                    _pass_line(stream, data)
                    raise self.too_long(number)
                located = self._line(number, data)
            except CorpusError as error:
                yield error
            else:
                if located:
                    yield located

    def _line(self, number: int, data: bytes) -> JsonObject | None:
        try:
            text = data.decode("utf-8-sig" if number == 1 else "utf-8")
            return self._located(number, json_value(text), text) if text.strip() else None
        except UnicodeDecodeError as error:
            raise self.not_utf8(number, error.object[error.start]) from None
        except json.JSONDecodeError as error:
            problem = f"broken JSON at column {error.colno}: {error.msg}"
            raise self.fail(number, f"{problem}; each line must be one JSON object") from None
        except ValueError as error:
            raise self.fail(number, str(error)) from None

    def _spread(self, stream: BinaryIO) -> Iterator[JsonObject | CorpusError]:
        text = _Text(self, stream)
        while text.next_character():
            yield self._next(text)

    def _list(self, stream: BinaryIO) -> Iterator[JsonObject | CorpusError]:
        text = _Text(self, stream)
        text.skip("[")
        if text.next_character() != "]":
            while True:
                text.next_character()
                yield self._next(text)
                if text.next_character() != ",":
                    break
                text.skip(",")
        text.skip("]")
        if text.next_character():
            raise self.fail(text.line, "more text after the end of the list")

    def _next(self, text: "_Text") -> JsonObject | CorpusError:
        """The next object of a text, or the error of one that is broken.

        Raises:
            CorpusError: the rest of the text cannot be read.
        """
        line = text.line
        value = text.value()
        try:
            text.check_utf8(line)
            return self._located(line, value, text.latest)
        except CorpusError as error:
            return error

    def _located(self, line: int, value: object, spelled: str) -> JsonObject:
        if not isinstance(value, dict):
            raise self.fail(line, f"a JSON object is needed here, not {type(value).__name__}")
        if _HALF.search(spelled):
            whole: dict[str, Any] = storable_json(value)
            self.reading.replaced += whole != value
            value = whole
        return JsonObject(line, value)

    def too_long(self, line: int) -> CorpusError:
        """The error for a record that is too long for memory."""
        return self.fail(line, f"the record is longer than {LONGEST >> 20} MiB: split it")

    def not_utf8(self, line: int, byte: int) -> CorpusError:
        """The error for a byte that is part of no character."""
        return self.fail(line, f"byte 0x{byte:02x} is not UTF-8; convert the file to UTF-8")


def _pass_line(stream: BinaryIO, data: bytes) -> None:
    """Skip to the end of the line that `data` begins."""
    while data and not data.endswith(b"\n"):
        data = stream.readline(BLOCK)


class _Text:
    """A window over a long JSON text that moves on as values are read."""

    def __init__(self, records: JsonRecords, stream: BinaryIO) -> None:
        self.line = 1
        self._records = records
        self._stream = stream
        # Bytes that are not UTF-8 are reported with their record, so that it can be skipped.
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")(errors="surrogateescape")
        self._window = ""
        self._at = 0
        self._begun = 0

    def next_character(self) -> str:
        """The next character that is not white space; empty at the end."""
        while True:
            if match := _VISIBLE.search(self._window, self._at):
                self._move(match.start())
                return match.group()
            self._move(len(self._window))
            if not self._extend():
                return ""

    def skip(self, expected: str) -> None:
        """Skip one required character."""
        character = self.next_character()
        if character != expected:
            actual = repr(character) if character else "the end of the file"
            problem = f"broken JSON: {expected!r} is needed, not {actual}"
            raise self._records.fail(self.line, problem)
        self._move(self._at + 1)

    def value(self) -> object:
        """The value that begins at the current place."""
        while True:
            try:
                value, end = json_at(self._window, self._at)
            except json.JSONDecodeError as error:
                cut_off = error.msg.startswith("Unterminated string")
                cut_off = cut_off or error.pos > len(self._window) - _TAIL
                if cut_off and len(self._window) - self._at > LONGEST:
                    raise self._records.too_long(self.line) from None
                if cut_off and self._extend():
                    continue
                line = self.line + self._window.count("\n", self._at, error.pos)
                raise self._records.fail(line, f"broken JSON: {error.msg}") from None
            except ValueError as error:
                raise self._records.fail(self.line, str(error)) from None
            self._begun = self._at
            self._move(end)
            return value

    @property
    def latest(self) -> str:
        """The text of the latest value in the file."""
        return self._window[self._begun : self._at]

    def check_utf8(self, line: int) -> None:
        """Raise if the latest value, which began on `line`, has bytes that are not UTF-8."""
        if match := _ESCAPED.search(self._window, self._begun, self._at):
            line += self._window.count("\n", self._begun, match.start())
            raise self._records.not_utf8(line, ord(match.group()) - 0xDC00)

    def _move(self, to: int) -> None:
        self.line += self._window.count("\n", self._at, to)
        self._at = to

    def _extend(self) -> bool:
        """Read on; False at the end of the file."""
        # Doubling the unread text keeps a very long value linear in time.
        data = self._stream.read(max(BLOCK, len(self._window) - self._at))
        text = self._utf8.decode(data, final=not data)
        self._window = self._window[self._at :] + text
        self._at = 0
        return bool(data)
