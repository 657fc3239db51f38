"""Plan, claim and complete the items of experiments.

Invariant: an item is completed at most once for each time it was planned, by the sitting that
holds it, in the transaction that writes its run and credits. So a sitting that is killed loses
what it had not completed and nothing else, and one that was taken for dead cannot add to what
another has done in its place.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, func, select, update

from hopscope.runtime.errors import StoreError, UsageError
from hopscope.runtime.types import Appraisal, Credit, Run, RunError
from hopscope.store.experiment_reading import entry, read_arms
from hopscope.store.experiment_records import Arm, Claimed, Entry, Experiment
from hopscope.store.interning import intern_entries
from hopscope.store.schema import arms, experiments, items, questions, runs, sittings
from hopscope.store.writing import write_appraisal, write_credits, write_runs

SILENT = timedelta(seconds=90)
"""After so long without a sign of life a sitting is taken for dead and its items are given to
others."""


def add(connection: Connection, experiment: Experiment, entries: Sequence[Entry]) -> None:
    """Add the experiment, or to the one of that name what it lacks of arms and questions."""
    number = _number(connection, experiment)
    positions = _add_arms(connection, number, experiment.arms)
    asked = intern_entries(connection, entries)
    query = select(items.c.question, items.c.arm).where(items.c.experiment == number)
    there = {tuple(row) for row in connection.execute(query)}
    wanted = dict.fromkeys(
        (asked[e.hash], positions[arm.label]) for e in entries for arm in experiment.arms
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
            (pair for pair in wanted if pair not in there), start=len(there)
        )
    ]
    if rows:
        connection.execute(items.insert(), rows)


def sit(connection: Connection, experiment: int, owner: str, environment: object) -> int:
    """Begin a sitting; its number."""
    now = datetime.now(UTC)
    row = {"experiment": experiment, "owner": owner, "environment": environment}
    added = sittings.insert().values(**row, started=now, seen=now).returning(sittings.c.number)
    return int(connection.execute(added).scalar_one())


def claim(connection: Connection, sitting: int, limit: int) -> list[Claimed]:
    """Take up to `limit` items that nobody is at, in the order of the plan."""
    experiment = sign_of_life(connection, sitting)
    _free(connection, experiment)
    query = (
        select(items.c.position)
        .where(items.c.experiment == experiment, items.c.status == "pending")
        .order_by(items.c.position)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    taken = list(connection.execute(query).scalars())
    if not taken:
        return []
    own = (items.c.experiment == experiment) & items.c.position.in_(taken)
    connection.execute(
        update(items)
        .where(own, items.c.status == "pending")
        .values(status="running", sitting=sitting, attempts=items.c.attempts + 1)
    )
    by_position = dict(enumerate(read_arms(connection, experiment)))
    found = (
        select(items.c.position.label("place"), items.c.arm, questions)
        .join(questions, questions.c.number == items.c.question)
        .where(own, items.c.status == "running")
        .order_by(items.c.position)
    )
    return [
        Claimed(entry=entry(row), arm=by_position[row["arm"]], position=row["place"])
        for row in connection.execute(found).mappings()
    ]


def complete(
    connection: Connection,
    sitting: int,
    position: int,
    *,
    run: Run | None,
    credits: Sequence[Credit],
    appraisals: Iterable[Appraisal],
    error: RunError | None,
) -> bool:
    """Write what became of an item; False, and nothing is written, if the sitting has it no more.

    It has failed if there is an `error`; then the run may be missing."""
    experiment = sign_of_life(connection, sitting)
    own = (
        (items.c.experiment == experiment)
        & (items.c.status == "running")
        & (items.c.position == position)
        & (items.c.sitting == sitting)
    )
    if not connection.execute(select(items.c.position).where(own).with_for_update()).first():
        return False
    number = None
    if run is not None:
        write_runs(connection, [run])
        number = connection.execute(select(runs.c.number).where(runs.c.id == run.id)).scalar_one()
        write_credits(connection, {run.id: number}, credits)
        for appraisal in appraisals:
            write_appraisal(connection, number, appraisal)
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


def leave(connection: Connection, sitting: int) -> None:
    """End a sitting, whoever's it is; what it was at is pending again."""
    connection.execute(
        update(sittings)
        .where(sittings.c.number == sitting, sittings.c.ended.is_(None))
        .values(ended=datetime.now(UTC))
    )
    connection.execute(
        update(items)
        .where(items.c.sitting == sitting, items.c.status == "running")
        .values(status="pending", sitting=None)
    )


def retry(connection: Connection, experiment: int) -> int:
    """Make what failed pending again; how many items that were."""
    changed = connection.execute(
        update(items)
        .where(items.c.experiment == experiment, items.c.status == "failed")
        .values(status="pending", sitting=None, run=None, error_type=None, error_message=None)
    )
    return changed.rowcount


def open_sittings(connection: Connection, experiment: int) -> dict[int, str]:
    """Owners of the sittings that have not ended, by the sitting's number."""
    query = select(sittings.c.number, sittings.c.owner).where(
        sittings.c.experiment == experiment, sittings.c.ended.is_(None)
    )
    return {row.number: row.owner for row in connection.execute(query)}


def _number(connection: Connection, experiment: Experiment) -> int:
    """The row of the experiment, made if there is none of its name; others wait for it."""
    query = select(experiments.c.number, experiments.c.fingerprint)
    query = query.where(experiments.c.name == experiment.name).with_for_update()
    found = connection.execute(query).first()
    if found is None:
        row = experiment.model_dump(exclude={"arms"})
        added = experiments.insert().values(**row).returning(experiments.c.number)
        return int(connection.execute(added).scalar_one())
    if found.fingerprint != experiment.fingerprint:
        raise UsageError(
            f"the experiment {experiment.name} was begun with other settings: give those, or "
            "another --name"
        )
    return int(found.number)


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


def sign_of_life(connection: Connection, sitting: int) -> int:
    """Note that the sitting lives; its experiment's number.

    Raises:
        StoreError: there is no such sitting.
    """
    seen = (
        update(sittings)
        .where(sittings.c.number == sitting)
        .values(seen=datetime.now(UTC))
        .returning(sittings.c.experiment)
    )
    experiment = connection.execute(seen).scalar()
    if experiment is None:
        raise StoreError(f"there is no sitting {sitting}")
    return int(experiment)


def _free(connection: Connection, experiment: int) -> None:
    """Make pending what is held by sittings that ended or are silent."""
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
