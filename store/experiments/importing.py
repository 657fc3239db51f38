"""Keep imported runs in an experiment: finished items that no worker claimed.

A question stands in an arm once. A further run of the same question goes to the next arm of the
same label: `r1_searcher`, `r1_searcher#2`, …
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from typing import NamedTuple

from sqlalchemy import Connection, func, select, update

from hopscope.runtime.types import IMPORTED, Run, RunError, digest
from hopscope.store.database.schema import arms, experiments, items, runs
from hopscope.store.experiments.reading import read_arms
from hopscope.store.experiments.records import Arm, DatasetEntry, Experiment
from hopscope.store.experiments.writing import intern_entries
from hopscope.store.runs.interning import chunks
from hopscope.store.runs.reading import read_run
from hopscope.store.runs.writing import write_runs

FAILED = RunError(type="Interrupted", message="the run was interrupted")
"""Stands for the error of an unfinished run, which records none."""


class Kept(NamedTuple):
    """What became of some imported runs."""

    new: int
    known: int
    """The experiment had them already."""
    corrected: int
    """Runs that were stored and have other right answers now; their credits are deleted."""
    elsewhere: dict[str, str]
    """The experiments of those that another one has, by id: a run belongs to one."""


def planned(name: str) -> Experiment:
    """The experiment of imported runs, which depends on no settings."""
    return Experiment(
        name=name,
        settings={"imported": True},
        reader="",
        retriever="",
        entailment="",
        seed=0,
        fingerprint=digest("imported"),
        created=datetime.now(UTC),
    )


def keep(connection: Connection, experiment: int, found: Sequence[Run], label: str | None) -> Kept:
    """Store runs as finished items. A run that is stored already stays as it is, with its credits,
    unless it has other right answers now: then its credits, measured by the old ones, are gone.
    """
    distinct = {run.id: run for run in found}
    stored = _stored(connection, list(distinct))
    elsewhere = {
        id: there.name for id, there in stored.items() if there.experiment not in (None, experiment)
    }
    fresh = [run for id, run in distinct.items() if id not in stored]
    corrected: list[Run] = []
    homeless: list[Run] = []
    for id, there in stored.items():
        answers = distinct[id].question.answers or there.answers
        if id in elsewhere or (there.experiment is not None and answers == there.answers):
            continue
        run = _with_answers(read_run(connection, there.number), answers)
        if answers != there.answers:
            corrected.append(run)
        if there.experiment is None:
            homeless.append(run)
    write_runs(connection, [*fresh, *corrected])
    entries = {
        run.id: DatasetEntry(question=run.question) for run in [*fresh, *homeless, *corrected]
    }
    questions = intern_entries(connection, entries.values())
    numbers = {id: there.number for id, there in _stored(connection, list(entries)).items()}
    for run in corrected:
        connection.execute(
            update(items)
            .where(items.c.run == numbers[run.id])
            .values(question=questions[entries[run.id].hash])
        )
    placed = [(run, questions[entries[run.id].hash]) for run in [*fresh, *homeless]]
    _add_items(connection, experiment, placed, numbers, label)
    new = len(placed)
    return Kept(new, len(found) - new - len(elsewhere), len(corrected), elsewhere)


class _Stored(NamedTuple):
    """A stored run."""

    number: int
    answers: tuple[str, ...]
    experiment: int | None
    """The experiment that has it."""
    name: str


def _stored(connection: Connection, ids: Sequence[str]) -> dict[str, _Stored]:
    """Those of these runs that are stored."""
    found: dict[str, _Stored] = {}
    for chunk in chunks(ids):
        query = (
            select(runs.c.id, runs.c.number, runs.c.answers, items.c.experiment, experiments.c.name)
            .outerjoin(items, items.c.run == runs.c.number)
            .outerjoin(experiments, experiments.c.number == items.c.experiment)
            .where(runs.c.id.in_(chunk))
        )
        for id, number, answers, of, name in connection.execute(query):
            found[id] = _Stored(number, tuple(answers), of, name or "")
    return found


def _with_answers(run: Run, answers: tuple[str, ...]) -> Run:
    question = run.question.model_copy(update={"answers": answers})
    return run.model_copy(update={"question": question})


def _add_items(
    connection: Connection,
    experiment: int,
    placed: Sequence[tuple[Run, int]],
    numbers: dict[str, int],
    label: str | None,
) -> None:
    if not placed:
        return
    known = {arm.label: place for place, arm in enumerate(read_arms(connection, experiment))}
    taken: set[tuple[int, int]] = set()
    for chunk in chunks([question for _, question in placed]):
        query = select(items.c.question, items.c.arm).where(
            items.c.experiment == experiment, items.c.question.in_(chunk)
        )
        taken.update((question, arm) for question, arm in connection.execute(query))
    last = select(func.max(items.c.position)).where(items.c.experiment == experiment)
    position = connection.execute(last).scalar()
    rows = []
    for run, question in placed:
        arm = _arm(connection, experiment, run, label, known, question, taken)
        taken.add((question, arm))
        position = 0 if position is None else position + 1
        error = run.error or (FAILED if run.status != "ok" else None)
        rows.append(
            {
                "experiment": experiment,
                "question": question,
                "arm": arm,
                "position": position,
                "status": "failed" if error else "ok",
                "attempts": 1,
                "run": numbers[run.id],
                "error_type": error and error.type,
                "error_message": error and error.message,
            }
        )
    connection.execute(items.insert(), rows)


def _arm(
    connection: Connection,
    experiment: int,
    run: Run,
    label: str | None,
    known: dict[str, int],
    question: int,
    taken: set[tuple[int, int]],
) -> int:
    """The place of the first arm of the label that has no run of this question; a new one if all
    have."""
    base = label or run.workflow.removeprefix(IMPORTED)
    for turn in count(1):
        named = base if turn == 1 else f"{base}#{turn}"
        if named not in known:
            known[named] = len(known)
            arm = Arm(label=named, workflow=run.workflow, settings={"options": {}})
            row = {"experiment": experiment, "position": known[named]}
            connection.execute(arms.insert().values(**row, **arm.model_dump()))
        if (question, known[named]) not in taken:
            return known[named]
    raise AssertionError("count() has no end")
