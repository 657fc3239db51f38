"""The files to import, and what a format makes of them.

Invariants: a record names a file by its name alone, never by its folder; what cannot be read is
counted and named, and nothing stands in its place.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pydantic import ValidationError

from hopscope.runtime.corpora.records.json_records import JsonObject, JsonRecords, Reading
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.errors import CorpusError, UsageError
from hopscope.runtime.types import Run

HEAD = 20
"""Records at the beginning of a file by which its format is found."""
IMPORTED = "imported:"
"""Prefix of the workflow of an imported run: no command can run it again."""
PLACE = frozenset({"file", "sha256", "line"})
"""Options of an imported run that tell where it was read, and are no part of what it did."""


class Unread(NamedTuple):
    """An item that could not be read."""

    where: str
    """File and line."""
    problem: str


class Source:
    """A file to import."""

    def __init__(self, path: Path, name: str | None = None) -> None:
        """
        Args:
            name: stands in the records for the file; by default its name.

        Raises:
            UsageError: there is no such file.
        """
        self.path = path
        self.name = name or path.name
        self.reading = Reading(skip=True)
        """The records that are no JSON."""
        self._named = 0
        if not path.is_file():
            raise UsageError(f"there is no file {path}")

    @cached_property
    def sha256(self) -> str:
        """Hash of its bytes, in hex."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def objects(self) -> Iterator[JsonObject]:
        """Its JSON objects with their lines, one at a time; those that cannot be read are noted in
        `reading`.

        Raises:
            CorpusError: the rest of the file cannot be read.
        """
        return iter(JsonRecords(self.path, self.reading))

    @cached_property
    def head(self) -> tuple[Mapping[str, Any], ...]:
        """Its first objects; none if it holds no JSON."""
        found: list[Mapping[str, Any]] = []
        try:
            for located in JsonRecords(self.path, Reading(skip=True)):
                found.append(located.value)
                if len(found) == HEAD:
                    break
        except CorpusError:
            pass
        return tuple(found)

    def broken(self) -> Iterator[Unread]:
        """The records that are no JSON and were passed since the last call; of each file the first
        100."""
        for error in self.reading.problems[self._named :]:
            self._named += 1
            line, _, problem = str(error).removeprefix(f"{self.path}, ").partition(": ")
            yield Unread(f"{self.name}, {line}", problem)

    def where(self, line: int) -> str:
        """The place of a record, for messages."""
        return f"{self.name}, line {line}"


class RunFormat(Protocol):
    """A format of runs."""

    def fits(self, source: Source) -> bool:
        """Whether the file looks so, by its first records."""
        ...

    def runs(self, sources: Sequence[Source]) -> Iterator[Run | Unread]:
        """The runs of files of this format, one at a time, without ids but for those that were
        ours, and what could not be read.

        Raises:
            CorpusError: the rest of a file cannot be read.
        """
        ...


def each_record(
    sources: Iterable[Source], parse: Callable[[Mapping[str, Any]], Run]
) -> Iterator[Run | Unread]:
    """The runs of files with one run in each record, in order.

    Args:
        parse: makes the run of a record, or raises MalformedRecordError.
    """
    for source in sources:
        for located in source.objects():
            yield from source.broken()
            read = attempt(lambda: parse(located.value), source.where(located.line))  # noqa: B023
            yield placed(read, source, located.line) if isinstance(read, Run) else read
        yield from source.broken()


def attempt(parse: Callable[[], Run], where: str) -> Run | Unread:
    """The run that `parse` makes, or why it makes none."""
    try:
        return parse()
    except MalformedRecordError as error:
        return Unread(where, str(error))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        return Unread(where, f"{field}: {first['msg']}")


def placed(run: Run, source: Source, line: int) -> Run:
    """The run with the file and line that it was read from."""
    place = {"file": source.name, "sha256": source.sha256, "line": line}
    return run.model_copy(update={"options": {**run.options, **place}})
