"""Rollouts of other programs as runs, read by the formats of `hopscope import`.

Invariant: there is one result for each record, in order, so that rewards line up with rollouts. Two
rollouts that did the same stay two, unlike runs that are imported.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Question, Run
from hopscope.store.importers import recognition
from hopscope.store.importers.golds import Golds, answered
from hopscope.store.importers.recognition import AUTO
from hopscope.store.trajectories.sources import Advising, RunFormat, Source, Unread

_log = logging.getLogger(__name__)


def of_file(path: Path, format: str = AUTO, golds: Golds | None = None) -> Iterator[Run | Unread]:
    """The rollouts of a file of JSON lines, one at a time. Their ids are the file's name and the
    line.

    Args:
        format: name of the format (`hopscope list formats`), with its options; `auto` finds it.
        golds: right answers, which replace those of the file.

    Raises:
        UsageError: there is no such file or format, or none fits.
        CorpusError: the rest of the file cannot be read.
    """
    source = Source(path)
    reader = _format(source, format)
    asked: Question | None = None
    matched = 0
    for read in reader.runs([source]):
        if isinstance(read, Run):
            answers = golds.of(read.question) if golds else ()
            asked, matched = asked or read.question, matched + bool(answers)
            id = source.where(int(str(read.options["line"])))
            question = answered(read.question, answers)
            yield read.model_copy(update={"id": id, "question": question})
        else:
            yield read
    if isinstance(reader, Advising):
        for note in reader.advice():
            _log.warning(note)
    if golds and asked and not matched:
        for note in golds.advice(asked):
            _log.warning(note)


def of_records(records: Sequence[Mapping[str, Any]], format: str = AUTO) -> list[Run | Unread]:
    """The rollouts of records, as `of_file` reads them from lines.

    Raises:
        UsageError: there is no such format, none fits, or a record is no JSON or not one rollout.
    """
    if not records:
        return []
    with TemporaryDirectory() as folder:
        path = Path(folder, "rollouts")
        try:
            lines = [json.dumps(dict(record)) for record in records]
        except (TypeError, ValueError) as error:
            raise UsageError(f"rollouts: a record is no JSON: {error}") from None
        path.write_text("\n".join(lines), encoding="utf-8")
        found = list(of_file(path, format))
    if len(found) != len(records):
        raise UsageError(f"{len(records)} records hold {len(found)} rollouts: give one in each")
    return found


def _format(source: Source, named: str) -> RunFormat:
    """
    Raises:
        UsageError: there is no such format, or none fits the file.
    """
    if named != AUTO:
        return recognition.named(named)[1]
    known = recognition.known()
    fitting = recognition.fitting(source, known)
    if fitting is not None:
        return known[fitting]
    problem = recognition.misfit(source)
    if problem == recognition.UNKNOWN:
        raise UsageError(f"{source.name} {problem} of rollouts: choose from {', '.join(known)}")
    raise UsageError(f"{source.name}: {problem}")
