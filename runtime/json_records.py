"""Read JSON objects from a file one at a time: JSON lines or one JSON list, plain or gzipped.

Memory holds one object of at most `LONGEST` bytes and one block of text, however long the file
is, a list on a single line included. Whatever is wrong is a `CorpusError` with the file and the
line; a reader that is told to skip notes it and goes on with the next record, where it can be told
where that begins.
"""

import codecs
import gzip
import json
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from hopscope.runtime.errors import CorpusError
from hopscope.runtime.text import storable_json

BLOCK = 1 << 16
LONGEST = 1 << 26
"""Bytes, or characters in a list, of the longest record that is read: 64 MiB. Three gigabytes of
one letter are three megabytes when gzipped."""
_VISIBLE = re.compile(r"\S")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""Spells half of a surrogate pair in JSON; two that belong together spell a character."""
_ESCAPED = re.compile("[\udc80-\udcff]")
"""How Python's `surrogateescape` writes bytes that are not UTF-8; they are 0xdc00 too high."""
GZIP_MAGIC = b"\x1f\x8b"
NOTED = 100
"""Skipped records whose errors are kept; further ones are only counted."""
# An error this near to the end of the block may only mean that the rest is not read yet.
_TAIL = 16


class Located(NamedTuple):
    """An object and where it stands."""

    line: int
    """The line it begins on, from 1."""
    value: dict[str, Any]


@dataclass
class Reading:
    """One reading of one or more files: what was left out, what was mended, and how far it is."""

    skip: bool = False
    """Whether broken records are left out and noted instead of refused."""
    skipped: int = 0
    problems: list[CorpusError] = field(default_factory=list)
    """What was wrong with the first 100 of those left out."""
    replaced: int = 0
    """Records with half of a surrogate pair, where U+FFFD stands now."""
    bytes_read: int = 0
    """Of the files as they lie on disk."""

    def let_pass(self, error: CorpusError) -> None:
        """Note what is wrong with a record and leave it out; raise it unless told to skip."""
        if not self.skip:
            raise error from None
        self.skipped += 1
        if self.skipped <= NOTED:
            self.problems.append(error)


class JsonRecords:
    """The objects of a file. Can be read again; reading is tracked for a progress bar."""

    def __init__(self, path: Path, reading: Reading | None = None) -> None:
        """
        Args:
            reading: of which this file is a part; without it broken records are refused.
        """
        self.path = path
        self.reading = reading or Reading()
        try:
            if not path.is_file():
                what = "is a folder" if path.is_dir() else "does not exist"
                raise CorpusError(f"{path} {what}: give a .jsonl or .json file, or one of them .gz")
            self.size = path.stat().st_size
            with path.open("rb") as file:
                self._zipped = file.read(2) == GZIP_MAGIC
        except OSError as error:
            raise CorpusError(f"{path} cannot be read: {error.strerror}") from None

    def fail(self, line: int, problem: str) -> CorpusError:
        """The error for something wrong on a line."""
        return CorpusError(f"{self.path}, line {line}: {problem}")

    def __iter__(self) -> Iterator[Located]:
        before = self.reading.bytes_read
        try:
            with (
                self.path.open("rb") as file,
                gzip.open(file) if self._zipped else nullcontext(file) as unzipped,
            ):
                start = unzipped.peek(BLOCK).removeprefix(codecs.BOM_UTF8).lstrip()
                read = self._list if start.startswith(b"[") else self._lines
                for located in read(cast(BinaryIO, unzipped)):
                    self.reading.bytes_read = before + file.tell()
                    yield located
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise CorpusError(f"{self.path} is a damaged gzip file: {error}") from None
        except OSError as error:
            raise CorpusError(f"{self.path} cannot be read: {error.strerror}") from None
        self.reading.bytes_read = before + self.size

    def _lines(self, stream: BinaryIO) -> Iterator[Located]:
        for number in count(1):
            data = stream.readline(LONGEST + 1)
            if not data:
                return
            try:
                if len(data) > LONGEST:
                    _pass_line(stream, data)
                    raise self.too_long(number)
                if located := self._line(number, data):
                    yield located
            except CorpusError as error:
                self.reading.let_pass(error)

    def _line(self, number: int, data: bytes) -> Located | None:
        try:
            text = data.decode("utf-8-sig" if number == 1 else "utf-8")
            return self._located(number, json.loads(text), text) if text.strip() else None
        except UnicodeDecodeError as error:
            raise self.not_utf8(number, error.object[error.start]) from None
        except json.JSONDecodeError as error:
            problem = f"broken JSON at column {error.colno}: {error.msg}"
            raise self.fail(number, f"{problem}; each line must be one JSON object") from None
        except (ValueError, RecursionError) as error:
            raise self.fail(number, _unreadable(error)) from None

    def _list(self, stream: BinaryIO) -> Iterator[Located]:
        text = _Text(self, stream)
        text.skip("[")
        if text.next_character() != "]":
            while True:
                text.next_character()
                line = text.line
                value = text.value()
                try:
                    text.check_utf8(line)
                    located = self._located(line, value, text.latest)
                except CorpusError as error:
                    self.reading.let_pass(error)
                else:
                    yield located
                if text.next_character() != ",":
                    break
                text.skip(",")
        text.skip("]")
        if text.next_character():
            raise self.fail(text.line, "more text after the end of the list")

    def _located(self, line: int, value: object, spelled: str) -> Located:
        if not isinstance(value, dict):
            raise self.fail(line, f"a JSON object is needed here, not {type(value).__name__}")
        if _HALF.search(spelled):
            whole: dict[str, Any] = storable_json(value)
            self.reading.replaced += whole != value
            value = whole
        return Located(line, value)

    def too_long(self, line: int) -> CorpusError:
        """The error for a record that memory is not to hold."""
        return self.fail(line, f"the record is longer than {LONGEST >> 20} MiB: split it")

    def not_utf8(self, line: int, byte: int) -> CorpusError:
        """The error for a byte that is no part of any character."""
        return self.fail(line, f"byte 0x{byte:02x} is not UTF-8; convert the file to UTF-8")


def _pass_line(stream: BinaryIO, data: bytes) -> None:
    """Read to the end of the line that `data` begins, and forget it."""
    while data and not data.endswith(b"\n"):
        data = stream.readline(BLOCK)


def _unreadable(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "JSON that is nested too deep"
    return f"a number with more than {sys.get_int_max_str_digits():,} digits"


class _Text:
    """A window over a long JSON text that is moved along as values are taken from it."""

    def __init__(self, records: JsonRecords, stream: BinaryIO) -> None:
        self.line = 1
        self._records = records
        self._stream = stream
        # What is not UTF-8 is found in its record, so that it can be skipped with it.
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")(errors="surrogateescape")
        self._json = json.JSONDecoder()
        self._window = ""
        self._at = 0
        self._begun = 0

    def next_character(self) -> str:
        """The next character that is not white space; empty at the end."""
        while True:
            if found := _VISIBLE.search(self._window, self._at):
                self._move(found.start())
                return found.group()
            self._move(len(self._window))
            if not self._extend():
                return ""

    def skip(self, wanted: str) -> None:
        """Pass over one character that must be there."""
        found = self.next_character()
        if found != wanted:
            got = repr(found) if found else "the end of the file"
            raise self._records.fail(self.line, f"broken JSON: {wanted!r} is needed, not {got}")
        self._move(self._at + 1)

    def value(self) -> object:
        """The value that begins at the current place."""
        while True:
            try:
                value, end = self._json.raw_decode(self._window, self._at)
            except json.JSONDecodeError as error:
                cut_off = error.msg.startswith("Unterminated string")
                cut_off = cut_off or error.pos > len(self._window) - _TAIL
                if cut_off and len(self._window) - self._at > LONGEST:
                    raise self._records.too_long(self.line) from None
                if cut_off and self._extend():
                    continue
                line = self.line + self._window.count("\n", self._at, error.pos)
                raise self._records.fail(line, f"broken JSON: {error.msg}") from None
            except (ValueError, RecursionError) as error:
                raise self._records.fail(self.line, _unreadable(error)) from None
            self._begun = self._at
            self._move(end)
            return value

    @property
    def latest(self) -> str:
        """The latest value as it stands in the file."""
        return self._window[self._begun : self._at]

    def check_utf8(self, line: int) -> None:
        """Raise if the latest value, which began on `line`, has bytes that are not UTF-8."""
        if found := _ESCAPED.search(self._window, self._begun, self._at):
            line += self._window.count("\n", self._begun, found.start())
            raise self._records.not_utf8(line, ord(found.group()) - 0xDC00)

    def _move(self, to: int) -> None:
        self.line += self._window.count("\n", self._at, to)
        self._at = to

    def _extend(self) -> bool:
        """Read on; False at the end of the file."""
        # Reading as much again as is waiting keeps a very long value linear in time.
        data = self._stream.read(max(BLOCK, len(self._window) - self._at))
        text = self._utf8.decode(data, final=not data)
        self._window = self._window[self._at :] + text
        self._at = 0
        return bool(data)
