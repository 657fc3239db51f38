"""Read a corpus as a stream of passages, whatever of the usual forms it has.

Each record is `{"id", "title", "text"}`; the id may be called `_id` (BEIR) or `docid`, and in
place of title and text there may be `contents` (pyserini, FlashRAG), whose first line is the
title. Passages without an id are known by a hash of title and text, so that the id does not
change when the corpus grows; one that comes again is left out and counted.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hopscope.runtime.errors import CorpusError
from hopscope.runtime.json_records import JsonRecords, Located
from hopscope.runtime.types import Passage, digest

ID_KEYS = ("id", "_id", "docid")
_SUFFIXES = (".gz", ".jsonl", ".json", ".ndjson")


class Corpus:
    """The passages of a file, in its order. Iterating reads the file; it can be done again."""

    def __init__(self, path: Path, *, skip: bool = False) -> None:
        """With `skip`, records that are broken are left out and noted instead of refused."""
        self._records = JsonRecords(path, skip=skip)
        self.repeats = 0
        """Passages without an id left out in the latest reading, as they had come before."""

    @property
    def name(self) -> str:
        """The file's name without the endings that tell its form."""
        name = self._records.path.name
        while name.endswith(_SUFFIXES):
            name = name[: name.rindex(".")]
        return name

    @property
    def skipped(self) -> int:
        """Broken records left out in the latest reading."""
        return self._records.skipped

    @property
    def replaced(self) -> int:
        """Records of the latest reading in which U+FFFD stands for half of a surrogate pair."""
        return self._records.replaced

    @property
    def problems(self) -> list[CorpusError]:
        """What was wrong with the first 100 of them, each with its line."""
        return self._records.problems

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._records.size

    @property
    def bytes_read(self) -> int:
        """How many of `size` the latest reading has done."""
        return self._records.bytes_read

    def __iter__(self) -> Iterator[Passage]:
        """Read the passages.

        Raises:
            CorpusError: a record is broken, has no text, or has the id of an earlier one.
        """
        self.repeats = 0
        # 8 bytes of a hash stand for each id, to hold millions of them.
        seen: dict[int, int] = {}
        for record in self._records:
            try:
                passage, named = self._passage(record)
            except CorpusError as error:
                self._records.let_pass(error)
                continue
            mark = int(digest(passage.id)[:16], 16)
            if mark not in seen:
                seen[mark] = record.line
                yield passage
            elif named:
                problem = f"id {passage.id!r} was already given on line {seen[mark]}"
                self._records.let_pass(
                    self._records.fail(record.line, f"{problem}; ids must differ")
                )
            else:
                self.repeats += 1

    def _passage(self, record: Located) -> tuple[Passage, bool]:
        """The passage, and whether its id was given."""
        id = self._id(record)
        title, text = self._title_and_text(record)
        return Passage(id=id or digest("", title, text)[:16], title=title, text=text), bool(id)

    def _id(self, record: Located) -> str:
        for key in ID_KEYS:
            id = record.value.get(key)
            if id is None:
                continue
            if isinstance(id, int) and not isinstance(id, bool):
                return str(id)
            if isinstance(id, str) and id.strip():
                return id
            raise self._records.fail(
                record.line, f"{key!r} must be a non-empty string or an integer; leave it out else"
            )
        return ""

    def _title_and_text(self, record: Located) -> tuple[str, str]:
        title = self._string(record, "title")
        if "text" in record.value or "contents" not in record.value:
            text = self._string(record, "text")
        else:
            text = self._string(record, "contents")
            first, newline, rest = text.partition("\n")
            if not title and newline and rest.strip():
                title, text = first.strip().strip('"'), rest
        if not text.strip():
            problem = "'text' is empty" if "text" in record.value else _no_text(record.value)
            raise self._records.fail(
                record.line, f"{problem}; every passage needs a text: fill it in or drop the record"
            )
        return title, text

    def _string(self, record: Located, key: str) -> str:
        value = record.value.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._records.fail(
                record.line, f"{key!r} must be a string, not {type(value).__name__}"
            )
        return value


def _no_text(value: dict[str, Any]) -> str:
    if "contents" in value:
        return "'contents' is empty"
    return f"no 'text' among the keys {', '.join(map(repr, value)) or '(none)'}"
