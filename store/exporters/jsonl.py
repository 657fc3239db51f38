"""Runs as JSON lines: one object for each run, oldest first,

    {"run": {...}, "credits": [{...}, ...], "appraisals": [{...}, ...], "games": [{...}, ...]}

where `run` has all fields of `hopscope.runtime.types.Run`, each credit those of `Credit`, each
appraisal (time and cost of measuring credits) those of `Appraisal`, and each game (the values of
coalitions, from which credits follow) those of `GameValues`. Nothing is rounded or cut:
`read` returns equal records.
"""

from collections.abc import Iterable, Iterator
from typing import TextIO

from pydantic import ValidationError

from hopscope.runtime.errors import StoreError
from hopscope.runtime.types import Appraisal, Credit, GameValues, Record, Run
from hopscope.runtime.validation import first
from hopscope.store.store import Store


class Line(Record):
    """A run with its credits, appraisals and coalition values."""

    run: Run
    credits: tuple[Credit, ...] = ()
    appraisals: tuple[Appraisal, ...] = ()
    games: tuple[GameValues, ...] = ()


def export(store: Store, file: TextIO, *, run_ids: Iterable[str] | None = None) -> int:
    """Write the runs of these ids, or all, one at a time; returns their number."""
    ids = store.ids() if run_ids is None else list(run_ids)
    for run_id in ids:
        run = store.load(run_id)
        line = Line(
            run=run,
            credits=tuple(store.credits(run.id)),
            appraisals=tuple(store.appraisals(run.id)),
            games=tuple(store.games(run.id)),
        )
        file.write(line.model_dump_json() + "\n")
    return len(ids)


def read(file: TextIO) -> Iterator[Line]:
    """The records of an exported file.

    Raises:
        StoreError: a line has another form; the message gives its number.
    """
    for number, text in enumerate(file, start=1):
        try:
            yield Line.model_validate_json(text)
        except ValidationError as error:
            raise StoreError(f"line {number}: {first(error, whole='JSON')}") from error
