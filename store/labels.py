"""What people said about runs: their labels, scores and notes."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, Self

from pydantic import model_validator
from sqlalchemy import Connection, delete, select

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Record, Text
from hopscope.store.database.database import Database
from hopscope.store.database.schema import WHOLE_RUN, WHOLE_STEP, labels, runs
from hopscope.store.runs.interning import chunks, insert
from hopscope.store.runs.rows import fields

Target = Literal["run", "answer", "step", "passage"]


class Label(Record):
    """A person's judgment of a run, its answer, one of its steps, or a passage that a step found.
    The same person's next judgment of that name in that place replaces it."""

    run_id: str
    target: Target
    step: int | None = None
    """The step's index, for a step or a passage."""
    passage: Text | None = None
    """The passage's key."""
    name: Text
    """What is judged, such as `relevant`."""
    score: float | None = None
    label: Text | None = None
    """The judgment as a word, such as `relevant` or `wrong`."""
    note: Text | None = None
    author: Text = ""
    """Empty if unknown."""
    source: Text
    """Where it was given: the name of a service, or `view`."""
    remote: Text = ""
    """Its id there."""
    made: datetime
    """When it was given."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.score is None and self.label is None and self.note is None:
            raise ValueError("a label has a score, a label or a note")
        if (self.target in ("step", "passage")) != (self.step is not None):
            raise ValueError("a label of a step or a passage names the step, others do not")
        if (self.target == "passage") != (self.passage is not None):
            raise ValueError("a label of a passage names it, others do not")
        return self


class Labels:
    """The labels of a store; `Store.labels`. Threads may share it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, given: Iterable[Label]) -> int:
        """Store labels; returns how many are new or changed.

        Raises:
            UsageError: a run is not stored; then nothing is.
        """
        latest = {_place(each): each for each in given}
        with self._database.writing() as connection:
            numbers = _numbers(connection, {each.run_id for each in latest.values()})
            known = {_place(each): each for each in _read(connection, numbers.values())}
            new = [each for place, each in latest.items() if known.get(place) != each]
            for each in new:
                row = _row(each, numbers[each.run_id])
                keys = {name: row[name] for name in _KEY}
                values = {name: value for name, value in row.items() if name not in keys}
                statement = insert(connection, labels).values(**row)
                connection.execute(
                    statement.on_conflict_do_update(index_elements=[*keys], set_=values)
                )
        return len(new)

    def delete(self, given: Iterable[Label]) -> None:
        """Forget labels."""
        with self._database.writing() as connection:
            listed = list(given)
            numbers = _numbers(connection, {each.run_id for each in listed})
            for each in listed:
                row = _row(each, numbers[each.run_id])
                connection.execute(
                    delete(labels).where(*(labels.c[name] == row[name] for name in _KEY))
                )

    def of(self, run_ids: Sequence[str]) -> dict[str, list[Label]]:
        """The labels of runs by the run's id, the oldest first; runs without labels are left out.

        Raises:
            UsageError: a run is not stored.
        """
        found: dict[str, list[Label]] = {}
        with self._database.reading() as connection:
            for each in _read(connection, _numbers(connection, run_ids).values()):
                found.setdefault(each.run_id, []).append(each)
        return found


_KEY = ("run", "target", "step", "passage", "name", "author", "source")


def _place(label: Label) -> tuple[object, ...]:
    at = (label.run_id, label.target, label.step, label.passage)
    return (*at, label.name, label.author, label.source)


def _row(label: Label, run: int) -> dict[str, object]:
    own = label.model_dump(exclude={"run_id", "step", "passage"})
    step = WHOLE_RUN if label.step is None else label.step
    return {**own, "run": run, "step": step, "passage": label.passage or WHOLE_STEP}


def _numbers(connection: Connection, ids: Iterable[str]) -> dict[str, int]:
    wanted = sorted(set(ids))
    numbers: dict[str, int] = {}
    for chunk in chunks(wanted):
        query = select(runs.c.id, runs.c.number).where(runs.c.id.in_(chunk))
        numbers.update(tuple(row) for row in connection.execute(query))
    if missing := [each for each in wanted if each not in numbers]:
        raise UsageError(f"labels of run {missing[0]}, which is not stored")
    return numbers


def _read(connection: Connection, numbers: Iterable[int]) -> list[Label]:
    found = []
    for chunk in chunks(numbers):
        query = (
            select(labels, runs.c.id)
            .join(runs, runs.c.number == labels.c.run)
            .where(labels.c.run.in_(chunk))
            .order_by(labels.c.run, labels.c.made, labels.c.number)
        )
        found += [
            Label(
                run_id=row["id"],
                step=None if row["step"] == WHOLE_RUN else row["step"],
                passage=None if row["passage"] == WHOLE_STEP else row["passage"],
                **fields(Label, row, but={"run_id", "step", "passage"}),
            )
            for row in connection.execute(query).mappings()
        ]
    return found
