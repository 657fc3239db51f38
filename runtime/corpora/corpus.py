"""Reads a corpus in any known format as a stream of passages.

`runtime.corpora.files` reads records from files and folders, `runtime.corpora.layouts` passages
from records. A passage without an id gets a hash of title and text as its id, which is the same in
any order and any file; repeats are left out and counted. Memory holds one record, and a few bytes
of a hash for each passage.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from hopscope.runtime.corpora import detection
from hopscope.runtime.corpora.records.chunks import Chunking
from hopscope.runtime.corpora.records.fields import body, identity, keys, string
from hopscope.runtime.corpora.records.json_records import Reading
from hopscope.runtime.corpora.records.reading import (
    Columns,
    FileRecord,
    MalformedRecordError,
    PassageDraft,
    fail,
)
from hopscope.runtime.errors import CorpusError, UsageError
from hopscope.runtime.texts.storable import storable
from hopscope.runtime.types import Passage, digest

_LINES = 1 << 48
"""More lines than a file has: the remainder of a place is its line, the quotient its file."""


class Corpus:
    """The passages of a file or folder, in its order. It can be iterated again."""

    def __init__(
        self,
        path: Path,
        *,
        format: str = detection.AUTO,
        columns: Columns | None = None,
        chunking: Chunking | None = None,
        skip: bool = False,
    ) -> None:
        """
        Args:
            format: a kind of file, a layout of records, or `auto`.
            columns: the fields that hold a passage, where the records have no known layout.
            chunking: how to split long passages.
            skip: whether to skip and note broken records instead of refusing them.

        Raises:
            UsageError: the format is unknown, or the columns do not fit it.
            CorpusError: the path has nothing to read.
        """
        detection.check(format)
        self._columns = columns or Columns()
        if self._columns.given and format in detection.layouts_known():
            raise UsageError(f"--text names the field of the text; leave out --format {format}")
        self._format = format
        self._path = path
        self._files = detection.found(path, format)
        self._chunking = chunking
        self._skip = skip
        self.reading = Reading(skip)
        """Skipped and mended records of the latest reading."""
        self.repeats = 0
        """Repeated passages without an id that the latest reading left out."""
        try:
            parts = [each for path, _ in self._files for each in _below(path)]
            self.size = sum(each.stat().st_size for each in parts)
            """Bytes on disk."""
        except OSError as error:
            raise CorpusError(f"{path} cannot be read: {error.strerror}") from None

    @property
    def name(self) -> str:
        """The name of the file or folder without the suffixes of its kind."""
        name = self._path.resolve().name
        endings = (".gz", *(end for _, module in self._files for end in module.SUFFIXES))
        while name.lower().endswith(endings) and not name.startswith("."):
            name = name[: name.rindex(".")]
        return name

    def __iter__(self) -> Iterator[Passage]:
        """Read the passages.

        Raises:
            CorpusError: a record is broken, has no text, or has the id of an earlier one.
            MissingExtraError: the package for such files is not installed.
        """
        self.repeats = 0
        self.reading = Reading(self._skip)
        # 8 bytes of a hash stand for each id, to hold millions of them.
        seen: dict[int, int] = {}
        for at, (path, module) in enumerate(self._files):
            layout: ModuleType | None = None
            for record in module.read(path, self.reading, self._columns):
                try:
                    if self._columns.given:
                        drafts = [self._by_columns(record.value)]
                    else:
                        layout = layout or detection.layout(record.value, self._format)
                        drafts = list(layout.read(record.value))
                except MalformedRecordError as error:
                    self.reading.let_pass(fail(path, record, str(error)))
                    continue
                yield from self._distinct(drafts, record, at, seen)

    def _distinct(
        self, drafts: list[PassageDraft], record: FileRecord, at: int, seen: dict[int, int]
    ) -> Iterator[Passage]:
        """The passages of a record without repeats of earlier ones."""
        for draft in drafts:
            for piece in self._chunking.split(draft) if self._chunking else (draft,):
                title, text = storable(piece.title), storable(piece.text)
                id = storable(piece.id) or digest("", title, text)[:16]
                mark = int(digest(id)[:16], 16)
                if mark not in seen:
                    seen[mark] = at * _LINES + record.number
                    yield Passage(id=id, title=title, text=text)
                elif piece.id:
                    self.reading.let_pass(self._repeated(id, record, at, seen[mark]))
                else:
                    self.repeats += 1

    def _repeated(self, id: str, record: FileRecord, at: int, before: int) -> CorpusError:
        file, number = divmod(before, _LINES)
        there = "" if file == at else f"in {self._files[file][0]}, "
        problem = f"id {id!r} was already given {there}on {record.unit} {number}; ids must differ"
        return fail(self._files[at][0], record, problem)

    def _by_columns(self, value: Mapping[str, Any]) -> PassageDraft:
        for name in self._columns.given.values():
            if name not in value:
                raise MalformedRecordError(f"no {name!r} among the fields {keys(value)}")
        named = self._columns
        return PassageDraft(
            body(value, named.text),
            string(value, named.title) if named.title else "",
            identity(value, named.id) if named.id else "",
        )


def _below(path: Path) -> list[Path]:
    """The file itself, or the files in the folder."""
    return [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
