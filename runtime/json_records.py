"""Read JSON objects from a file one at a time: JSON lines or one JSON list, plain or gzipped.

Memory holds one object and one block of text, however long the file is, a list on a single
line included. Whatever is wrong is a `CorpusError` with the file and the line.
"""

import codecs
import gzip
import json
import os
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from hopscope.runtime.errors import CorpusError

BLOCK = 1 << 16
_VISIBLE = re.compile(r"\S")
_GZIP_MAGIC = b"\x1f\x8b"
# An error this near to the end of the block may only mean that the rest is not read yet.
_TAIL = 16


class Located(NamedTuple):
    """An object and where it stands."""

    line: int
    """The line it begins on, from 1."""
    value: dict[str, Any]


class JsonRecords:
    """The objects of a file. Can be read again; reading is tracked for a progress bar."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes_read = 0
        """How far the latest reading is in the file as it lies on disk."""
        try:
            if not path.is_file():
                what = "is a folder" if path.is_dir() else "does not exist"
                raise CorpusError(f"{path} {what}: give a .jsonl or .json file, or one of them .gz")
            self.size = path.stat().st_size
            with path.open("rb") as file:
                self._zipped = file.read(2) == _GZIP_MAGIC
        except OSError as error:
            raise CorpusError(f"{path} cannot be read: {error.strerror}") from None

    def fail(self, line: int, problem: str) -> CorpusError:
        """The error for something wrong on a line."""
        return CorpusError(f"{self.path}, line {line}: {problem}")

    def __iter__(self) -> Iterator[Located]:
        self.bytes_read = 0
        try:
            with (
                self.path.open("rb") as file,
                gzip.open(file) if self._zipped else nullcontext(file) as unzipped,
            ):
                start = unzipped.peek(BLOCK).removeprefix(codecs.BOM_UTF8).lstrip()
                read = self._list if start.startswith(b"[") else self._lines
                for located in read(cast(BinaryIO, unzipped)):
                    self.bytes_read = file.tell()
                    yield located
        except (EOFError, gzip.BadGzipFile) as error:
            raise CorpusError(f"{self.path} is a damaged gzip file: {error}") from None
        self.bytes_read = os.path.getsize(self.path)

    def _lines(self, stream: BinaryIO) -> Iterator[Located]:
        for number, data in enumerate(stream, 1):
            try:
                text = data.decode("utf-8-sig" if number == 1 else "utf-8")
                if not text.strip():
                    continue
                value = json.loads(text)
            except UnicodeDecodeError as error:
                raise self._not_utf8(number, error) from None
            except json.JSONDecodeError as error:
                problem = f"broken JSON at column {error.colno}: {error.msg}"
                raise self.fail(number, f"{problem}; each line must be one JSON object") from None
            except (ValueError, RecursionError) as error:
                raise self.fail(number, f"JSON that cannot be read: {error}") from None
            yield self._located(number, value)

    def _list(self, stream: BinaryIO) -> Iterator[Located]:
        text = _Text(self, stream)
        text.skip("[")
        if text.next_character() != "]":
            while True:
                text.next_character()
                line = text.line
                yield self._located(line, text.value())
                if text.next_character() != ",":
                    break
                text.skip(",")
        text.skip("]")
        if text.next_character():
            raise self.fail(text.line, "more text after the end of the list")

    def _located(self, line: int, value: object) -> Located:
        if not isinstance(value, dict):
            raise self.fail(line, f"a JSON object is needed here, not {type(value).__name__}")
        return Located(line, value)

    def _not_utf8(self, line: int, error: UnicodeDecodeError) -> CorpusError:
        byte = error.object[error.start]
        return self.fail(line, f"byte 0x{byte:02x} is not UTF-8; convert the file to UTF-8")


class _Text:
    """A window over a long JSON text that is moved along as values are taken from it."""

    def __init__(self, records: JsonRecords, stream: BinaryIO) -> None:
        self.line = 1
        self._records = records
        self._stream = stream
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder()
        self._window = ""
        self._at = 0

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
                if cut_off and self._extend():
                    continue
                line = self.line + self._window.count("\n", self._at, error.pos)
                raise self._records.fail(line, f"broken JSON: {error.msg}") from None
            except (ValueError, RecursionError) as error:
                raise self._records.fail(self.line, f"JSON that cannot be read: {error}") from None
            self._move(end)
            return value

    def _move(self, to: int) -> None:
        self.line += self._window.count("\n", self._at, to)
        self._at = to

    def _extend(self) -> bool:
        """Read on; False at the end of the file."""
        # Reading as much again as is waiting keeps a very long value linear in time.
        data = self._stream.read(max(BLOCK, len(self._window) - self._at))
        try:
            text = self._utf8.decode(data, final=not data)
        except UnicodeDecodeError as error:
            line = self.line + self._window.count("\n", self._at)
            line += error.object[: error.start].count(b"\n")
            raise self._records._not_utf8(line, error) from None
        self._window = self._window[self._at :] + text
        self._at = 0
        return bool(data)
