"""Read the records of experiments with a fixed number of queries, however many items."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, select

from hopscope.runtime.types import (
    Appraisal,
    Credit,
    Question,
    RunError,
    ThoughtEnd,
    Usage,
)
from hopscope.store.database.schema import (
    RETRIEVALS,
    WHOLE_STEP,
    appraisals,
    arms,
    credits,
    experiments,
    generations,
    items,
    provenances,
    questions,
    runs,
    sittings,
    steps,
)
from hopscope.store.experiments.records import (
    Arm,
    DatasetEntry,
    Experiment,
    Item,
    ItemStatus,
    Outcome,
    Progress,
    Version,
    WorkerSession,
)
from hopscope.store.runs.interning import chunks
from hopscope.store.runs.rows import PREFIX, appraisal_of, credit_of, fields, provenance_of


def read_experiments(connection: Connection, *, name: str | None = None) -> list[Experiment]:
    """The experiment of that name, or all of them, the newest first."""
    query = select(experiments).order_by(experiments.c.created.desc(), experiments.c.number.desc())
    if name is not None:
        query = query.where(experiments.c.name == name)
    return [
        Experiment(
            **fields(Experiment, row, but={"arms"}), arms=read_arms(connection, row["number"])
        )
        for row in connection.execute(query).mappings().all()
    ]


def read_arms(connection: Connection, experiment: int) -> tuple[Arm, ...]:
    query = select(arms).where(arms.c.experiment == experiment).order_by(arms.c.position)
    return tuple(Arm(**fields(Arm, row)) for row in connection.execute(query).mappings())


def read_worker_sessions(connection: Connection, experiment: int) -> list[WorkerSession]:
    query = select(sittings).where(sittings.c.experiment == experiment).order_by(sittings.c.number)
    return [
        WorkerSession(**fields(WorkerSession, row)) for row in connection.execute(query).mappings()
    ]


def read_progress(connection: Connection, experiment: int) -> Progress:
    query = (
        select(items.c.status, func.count().label("items"))
        .where(items.c.experiment == experiment)
        .group_by(items.c.status)
    )
    return Progress(**{row.status: row.items for row in connection.execute(query)})


def read_version(connection: Connection, experiment: int) -> Version:
    created = select(experiments.c.created).where(experiments.c.number == experiment)
    own = (
        select(func.count(), func.max(appraisals.c.measured))
        .select_from(appraisals)
        .where(appraisals.c.run.in_(select(items.c.run).where(items.c.experiment == experiment)))
    )
    count, measured = connection.execute(own).one()
    return Version(
        created=connection.execute(created).scalar_one(),
        progress=read_progress(connection, experiment),
        appraisals=count,
        measured=measured,
    )


def read_items(
    connection: Connection, experiment: int, *, status: ItemStatus | None = None
) -> list[Item]:
    """The items in the order of the plan."""
    query = (
        select(items)
        .add_columns(arms.c.label, arms.c.workflow)
        .add_columns(*(c.label(PREFIX + c.name) for c in questions.c))
        .add_columns(*(runs.c[name].label(f"run_{name}") for name in _OF_RUN))
        .join(arms, (arms.c.experiment == items.c.experiment) & (arms.c.position == items.c.arm))
        .join(questions, questions.c.number == items.c.question)
        .outerjoin(runs, runs.c.number == items.c.run)
        .where(items.c.experiment == experiment)
        .order_by(items.c.position)
    )
    if status is not None:
        query = query.where(items.c.status == status)
    counted = _counted(connection, experiment)
    return [_item(row, counted) for row in connection.execute(query).mappings()]


def read_run_ids(connection: Connection, numbers: Sequence[int]) -> list[str]:
    """The ids of runs by number, in the order given."""
    known: dict[int, str] = {}
    for chunk in chunks(numbers):
        query = select(runs.c.number, runs.c.id).where(runs.c.number.in_(chunk))
        known |= dict(tuple(row) for row in connection.execute(query))
    return [known[number] for number in numbers]


def read_item_credits(
    connection: Connection,
    experiment: int,
    *,
    meters: Collection[str] | None = None,
    rules: Collection[str] | None = None,
    passages: bool = True,
    provenance: int | None = None,
) -> dict[str, list[Credit]]:
    """Credits by the run's id, of each run in the order of `store.runs.reading.read_credits`."""
    measured = _last_measured(connection, experiment)
    known = {row["number"]: provenance_of(row) for row in _provenances(connection, experiment)}
    query = (
        select(credits, runs.c.id)
        .join(items, items.c.run == credits.c.run)
        .join(runs, runs.c.number == credits.c.run)
        .where(items.c.experiment == experiment)
        .order_by(credits.c.run, credits.c.provenance, credits.c.meter)
        .order_by(credits.c.rule, credits.c.step, credits.c.passage)
    )
    if meters is not None:
        query = query.where(credits.c.meter.in_(meters))
    if rules is not None:
        query = query.where(credits.c.rule.in_(rules))
    if provenance is not None:
        query = query.where(credits.c.provenance == provenance)
    if not passages:
        query = query.where(credits.c.passage == WHOLE_STEP)
    found: dict[str, list[tuple[tuple[bool, Any], Credit]]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        when = measured.get((row["run"], row["provenance"]))
        credit = credit_of(row, known[row["provenance"]])
        found[row["id"]].append(((when is not None, when), credit))
    # The sort is stable; credits without a time come first.
    return {
        run_id: [credit for _, credit in sorted(rows, key=itemgetter(0))]
        for run_id, rows in found.items()
    }


def read_item_appraisals(connection: Connection, experiment: int) -> dict[str, list[Appraisal]]:
    """Appraisals by the run's id, the latest last."""
    known = {row["number"]: provenance_of(row) for row in _provenances(connection, experiment)}
    query = (
        select(appraisals, runs.c.id)
        .join(items, items.c.run == appraisals.c.run)
        .join(runs, runs.c.number == appraisals.c.run)
        .where(items.c.experiment == experiment)
        .order_by(appraisals.c.run, appraisals.c.measured, appraisals.c.provenance)
    )
    found: dict[str, list[Appraisal]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        found[row["id"]].append(appraisal_of(row, known[row["provenance"]]))
    return dict(found)


def read_thoughts(connection: Connection, experiment: int) -> dict[ThoughtEnd, int]:
    """Number of thoughts in the runs' replies, by the way they ended."""
    query = (
        select(generations.c.thought_end, func.count().label("thoughts"))
        .join(items, items.c.run == generations.c.run)
        .where(items.c.experiment == experiment, generations.c.thought_end.is_not(None))
        .group_by(generations.c.thought_end)
    )
    return {row.thought_end: row.thoughts for row in connection.execute(query)}


def entry(row: RowMapping, prefix: str = "") -> DatasetEntry:
    """The dataset entry in columns named as those of `questions`, after a prefix."""
    return DatasetEntry(
        question=Question(**fields(Question, row, prefix=prefix)),
        **fields(DatasetEntry, row, but=("question",), prefix=prefix),
    )


_OF_RUN = ("id", "answer", "status", "stop_reason", "started", "seconds")


def _item(row: RowMapping, counted: dict[int, RowMapping]) -> Item:
    outcome = None
    if row["run"] is not None:
        of_steps = counted.get(row["run"])
        count = {name: int(of_steps[name]) for name in _COUNTED} if of_steps else {}
        outcome = Outcome(
            run_id=row["run_id"],
            **{name: row[f"run_{name}"] for name in _OF_RUN if name != "id"},
            steps=count.pop("steps", 0),
            retrievals=count.pop("retrievals", 0),
            usage=Usage(**count),
        )
    error = None
    if row["error_type"] is not None:
        error = RunError(type=row["error_type"], message=row["error_message"])
    return Item(
        entry=entry(row, PREFIX),
        arm=row["label"],
        outcome=outcome,
        error=error,
        **fields(Item, row, but={"entry", "arm", "outcome", "error"}),
    )


_COUNTED = ("steps", "retrievals", *Usage.model_fields)


def _counted(connection: Connection, experiment: int) -> dict[int, RowMapping]:
    """Sums over the steps of each run."""
    query = (
        select(
            steps.c.run,
            func.count().label("steps"),
            RETRIEVALS.label("retrievals"),
            *(func.sum(steps.c[name]).label(name) for name in Usage.model_fields),
        )
        .join(items, items.c.run == steps.c.run)
        .where(items.c.experiment == experiment)
        .group_by(steps.c.run)
    )
    return {row["run"]: row for row in connection.execute(query).mappings()}


def _last_measured(connection: Connection, experiment: int) -> dict[tuple[int, int], Any]:
    """Time of the last measurement of each run under each provenance."""
    of = (appraisals.c.run, appraisals.c.provenance)
    query = (
        select(*of, func.max(appraisals.c.measured))
        .join(items, items.c.run == appraisals.c.run)
        .where(items.c.experiment == experiment)
        .group_by(*of)
    )
    return {(run, provenance): when for run, provenance, when in connection.execute(query)}


def _provenances(connection: Connection, experiment: int) -> list[RowMapping]:
    def used(by: Any) -> Select[Any]:
        return (
            select(by.c.provenance)
            .join(items, items.c.run == by.c.run)
            .where(items.c.experiment == experiment)
        )

    query = select(provenances).where(
        provenances.c.number.in_(used(credits).union(used(appraisals)))
    )
    return list(connection.execute(query).mappings())
