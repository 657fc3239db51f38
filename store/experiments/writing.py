"""Plan, claim and complete the items of experiments.

Invariant: an item is completed at most once for each time it was planned, by the worker session
that holds it, in the transaction that writes its run and credits. So a killed session loses only
the items it had not completed, and a session that was taken for dead cannot change an item that
another session completed instead.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, func, select, update

from hopscope.runtime.errors import StoreError, UsageError
from hopscope.runtime.types import Appraisal, Credit, GameValues, Run, RunError
from hopscope.store.database.schema import arms, experiments, items, questions, runs, sittings
from hopscope.store.experiments.reading import entry as read_entry
from hopscope.store.experiments.reading import read_arms
from hopscope.store.experiments.records import Arm, ClaimedItem, DatasetEntry, Experiment
from hopscope.store.runs.games import write_games
from hopscope.store.runs.interning import intern
from hopscope.store.runs.writing import write_measured, write_runs

SILENT = timedelta(seconds=90)
"""A session without a sign of life for this long is taken for dead; its items are free again."""


def add(connection: Connection, experiment: Experiment, entries: Sequence[DatasetEntry]) -> None:
    """Add the experiment, or add missing arms and questions to the one of that name."""
    number = begin(connection, experiment)
    arm_positions = _add_arms(connection, number, experiment.arms)
    question_numbers = intern_entries(connection, entries)
    query = select(items.c.question, items.c.arm).where(items.c.experiment == number)
    planned = {tuple(row) for row in connection.execute(query)}
    wanted = dict.fromkeys(
        (question_numbers[e.hash], arm_positions[arm.label])
        for e in entries
        for arm in experiment.arms
    )
    rows = [
        {
            "experiment": number,
            "question": question,
            "arm": arm,
            "position": position,
            "status": "pending",
            "attempts": 0,
        }
        for position, (question, arm) in enumerate(
            (pair for pair in wanted if pair not in planned), start=len(planned)
        )
    ]
    if rows:
        connection.execute(items.insert(), rows)


def begin_session(connection: Connection, experiment: int, owner: str, environment: object) -> int:
    """Begin a worker session; returns its number."""
    now = datetime.now(UTC)
    row = {"experiment": experiment, "owner": owner, "environment": environment}
    added = sittings.insert().values(**row, started=now, seen=now).returning(sittings.c.number)
    return int(connection.execute(added).scalar_one())


def claim(connection: Connection, session: int, limit: int) -> list[ClaimedItem]:
    """Claim up to `limit` pending items, in the order of the plan."""
    experiment = sign_of_life(connection, session)
    _free(connection, experiment)
    query = (
        select(items.c.position)
        .where(items.c.experiment == experiment, items.c.status == "pending")
        .order_by(items.c.position)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    positions = list(connection.execute(query).scalars())
    if not positions:
        return []
    own = (items.c.experiment == experiment) & items.c.position.in_(positions)
    connection.execute(
        update(items)
        .where(own, items.c.status == "pending")
        .values(status="running", sitting=session, attempts=items.c.attempts + 1)
    )
    by_position = dict(enumerate(read_arms(connection, experiment)))
    claimed = (
        select(items.c.position.label("place"), items.c.arm, questions)
        .join(questions, questions.c.number == items.c.question)
        .where(own, items.c.status == "running")
        .order_by(items.c.position)
    )
    return [
        ClaimedItem(entry=read_entry(row), arm=by_position[row["arm"]], position=row["place"])
        for row in connection.execute(claimed).mappings()
    ]


def complete(
    connection: Connection,
    session: int,
    position: int,
    *,
    run: Run | None,
    credits: Sequence[Credit],
    appraisals: Iterable[Appraisal],
    games: Iterable[GameValues],
    error: RunError | None,
) -> bool:
    """Write the result of an item. False, with nothing written, if the session no longer holds it.

    The item failed if there is an `error`; then the run may be missing."""
    experiment = sign_of_life(connection, session)
    own = (
        (items.c.experiment == experiment)
        & (items.c.status == "running")
        & (items.c.position == position)
        & (items.c.sitting == session)
    )
    if not connection.execute(select(items.c.position).where(own).with_for_update()).first():
        return False
    number = None
    if run is not None:
        write_runs(connection, [run])
        number = connection.execute(select(runs.c.number).where(runs.c.id == run.id)).scalar_one()
        write_measured(connection, {run.id: number}, credits, appraisals)
        write_games(connection, {run.id: number}, games)
    connection.execute(
        update(items)
        .where(own)
        .values(
            status="failed" if error else "ok",
            run=number,
            error_type=error and error.type,
            error_message=error and error.message,
        )
    )
    return True


def end_session(connection: Connection, session: int) -> None:
    """End a session of any process; its unfinished items are pending again."""
    connection.execute(
        update(sittings)
        .where(sittings.c.number == session, sittings.c.ended.is_(None))
        .values(ended=datetime.now(UTC))
    )
    connection.execute(
        update(items)
        .where(items.c.sitting == session, items.c.status == "running")
        .values(status="pending", sitting=None)
    )


def retry(connection: Connection, experiment: int) -> int:
    """Make failed items pending again; returns their number."""
    changed = connection.execute(
        update(items)
        .where(items.c.experiment == experiment, items.c.status == "failed")
        .values(status="pending", sitting=None, run=None, error_type=None, error_message=None)
    )
    return changed.rowcount


def open_sessions(connection: Connection, experiment: int) -> dict[int, str]:
    """Owners of the sessions that have not ended, by session number."""
    query = select(sittings.c.number, sittings.c.owner).where(
        sittings.c.experiment == experiment, sittings.c.ended.is_(None)
    )
    return {row.number: row.owner for row in connection.execute(query)}


def begin(connection: Connection, experiment: Experiment) -> int:
    """The row number of the experiment, inserted if missing; other writers wait for it."""
    query = select(experiments.c.number, experiments.c.fingerprint)
    query = query.where(experiments.c.name == experiment.name).with_for_update()
    known = connection.execute(query).first()
    if known is None:
        row = experiment.model_dump(exclude={"arms"})
        added = experiments.insert().values(**row).returning(experiments.c.number)
        return int(connection.execute(added).scalar_one())
    if known.fingerprint != experiment.fingerprint:
        raise UsageError(
            f"the experiment {experiment.name} began with other settings: give those, or "
            "another name (--name)"
        )
    return int(known.number)


def _add_arms(connection: Connection, experiment: int, wanted: Sequence[Arm]) -> dict[str, int]:
    """Positions of all arms by label."""
    known = {
        arm.label: (position, arm) for position, arm in enumerate(read_arms(connection, experiment))
    }
    for arm in wanted:
        if arm.label not in known:
            known[arm.label] = (len(known), arm)
            row = {"experiment": experiment, "position": known[arm.label][0]}
            connection.execute(arms.insert().values(**row, **arm.model_dump()))
        else:
            known[arm.label][1].check(arm)
    return {label: position for label, (position, _) in known.items()}


def sign_of_life(connection: Connection, session: int) -> int:
    """Record that the session is alive; returns its experiment's number.

    Raises:
        StoreError: there is no such session.
    """
    seen = (
        update(sittings)
        .where(sittings.c.number == session)
        .values(seen=datetime.now(UTC))
        .returning(sittings.c.experiment)
    )
    experiment = connection.execute(seen).scalar()
    if experiment is None:
        raise StoreError(f"no worker session {session}")
    return int(experiment)


def _free(connection: Connection, experiment: int) -> None:
    """Make items pending whose sessions ended or are silent."""
    latest = datetime.now(UTC) - SILENT
    gone = select(sittings.c.number).where(
        sittings.c.experiment == experiment,
        sittings.c.ended.is_not(None) | (sittings.c.seen < latest),
    )
    held = select(func.count()).where(items.c.experiment == experiment, items.c.status == "running")
    if not connection.execute(held).scalar_one():
        return
    connection.execute(
        update(items)
        .where(
            items.c.experiment == experiment,
            items.c.status == "running",
            items.c.sitting.in_(gone),
        )
        .values(status="pending", sitting=None)
    )


def intern_entries(connection: Connection, found: Iterable[DatasetEntry]) -> dict[str, int]:
    """Numbers of the questions of datasets, by `DatasetEntry.hash`."""
    rows = {
        entry.hash: entry.model_dump(exclude={"question", "supporting"})
        | {"supporting": list(entry.supporting)}
        | entry.question.model_dump(exclude={"answers"})
        | {"answers": list(entry.question.answers)}
        for entry in found
    }
    return intern(connection, questions, questions.c.hash, rows)
