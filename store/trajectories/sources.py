"""The files to import, and what a format makes of them.

Invariants: a record names a file by its name alone, never by its folder; what cannot be read is
counted and named, and nothing stands in its place.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pydantic import ValidationError

from hopscope.runtime.corpora.records.json_records import JsonObject, JsonRecords
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.errors import CorpusError, UsageError
from hopscope.runtime.types import Run

HEAD = 20
"""Records at the beginning of a file by which its format is found."""
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
        if not path.is_file():
            raise UsageError(f"there is no file {path}")

    @cached_property
    def sha256(self) -> str:
        """Hash of its bytes, in hex."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def records(self) -> Iterator[JsonObject | Unread]:
        """Its JSON objects with their lines, one at a time, and in their places what is broken.

        Raises:
            CorpusError: the rest of the file cannot be read.
        """
        for found in JsonRecords(self.path).each():
            yield self._unread(found) if isinstance(found, CorpusError) else found

    @property
    def head(self) -> tuple[Mapping[str, Any], ...]:
        """Its first objects; none if it holds no JSON."""
        return self._beginning.objects

    @property
    def problem(self) -> str:
        """Why it has no head: what is wrong with its first record, or that there is none."""
        return self._beginning.problem

    @cached_property
    def _beginning(self) -> "_Beginning":
        objects: list[Mapping[str, Any]] = []
        problem = ""
        try:
            for found in self.records():
                if isinstance(found, JsonObject):
                    objects.append(found.value)
                    if len(objects) == HEAD:
                        break
                else:
                    place = found.where.removeprefix(f"{self.name}, ")
                    problem = problem or f"{place}: {found.problem}"
        except CorpusError as error:
            told = str(error).removeprefix(f"{self.path}, ")
            problem = problem or told.replace(str(self.path), "the file", 1)
        if not problem:
            problem = "it holds no record" if self.path.stat().st_size else "the file is empty"
        return _Beginning(tuple(objects), problem)

    def _unread(self, error: CorpusError) -> Unread:
        place, _, problem = str(error).removeprefix(f"{self.path}, ").partition(": ")
        return Unread(f"{self.name}, {place}", problem)

    def where(self, line: int) -> str:
        """The place of a record, for messages."""
        return f"{self.name}, line {line}"


class _Beginning(NamedTuple):
    """The beginning of a file."""

    objects: tuple[Mapping[str, Any], ...]
    problem: str
    """Of the first record that cannot be read, or that there is none."""


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


@runtime_checkable
class Advising(Protocol):
    """A format that has something to say of the files, once they are read."""

    def advice(self) -> Iterator[str]:
        """What makes the result other than the user may expect, one sentence each."""
        ...


def each_record(
    sources: Iterable[Source], parse: Callable[[Mapping[str, Any]], Run]
) -> Iterator[Run | Unread]:
    """The runs of files with one run in each record, in order.

    Args:
        parse: makes the run of a record, or raises MalformedRecordError.
    """
    for source in sources:
        for found in source.records():
            if isinstance(found, Unread):
                yield found
                continue
            read = attempt(lambda: parse(found.value), source.where(found.line))  # noqa: B023
            yield placed(read, source, found.line) if isinstance(read, Run) else read


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
