"""Read records of runs with one query for each table."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    ScalarSelect,
    Select,
    Table,
    func,
    select,
)

from hopscope.runtime.types import (
    Appraisal,
    Credit,
    Decision,
    Exchange,
    Generation,
    GenerationRequest,
    Hit,
    Message,
    Passage,
    Prompt,
    Question,
    Run,
    RunError,
    Step,
    Thought,
)
from hopscope.store.database.schema import (
    appraisals,
    credits,
    decisions,
    exchanges,
    generations,
    listings,
    messages,
    passages,
    placements,
    prompts,
    provenances,
    runs,
    steps,
    texts,
)
from hopscope.store.runs.rows import (
    PREFIX,
    appraisal_of,
    credit_of,
    fields,
    provenance_of,
    rows_of,
    usage_of,
)


def read_run(connection: Connection, number: int) -> Run:
    """The run of this number, equal to the written one."""
    [found] = read_runs(connection, [number])
    return found


def read_runs(connection: Connection, numbers: Sequence[int]) -> list[Run]:
    """The runs of these numbers, in their order, with as many queries as for one."""
    query = select(runs).where(runs.c.number.in_(numbers))
    by_number = {row["number"]: row for row in connection.execute(query).mappings()}
    steps_of = _steps(connection, numbers)
    return [_run(by_number[number], steps_of[number]) for number in numbers]


def _run(row: RowMapping, made: Sequence[Step]) -> Run:
    error = None
    if row["error_type"] is not None:
        error = RunError(type=row["error_type"], message=row["error_message"])
    question = Question(text=row["question"], answers=row["answers"], id=row["question_id"])
    own = fields(Run, row, but={"question", "steps", "error"})
    return Run(question=question, error=error, steps=tuple(made), **own)


def read_credits(connection: Connection, number: int) -> list[Credit]:
    """The run's credits by provenance, meter, rule, step and passage, those of the whole run and
    whole steps first, as `in_order_of_measurement`."""
    query = (
        select(credits, *(c.label(PREFIX + c.name) for c in provenances.c), runs.c.id)
        .join(provenances, provenances.c.number == credits.c.provenance)
        .join(runs, runs.c.number == credits.c.run)
        .where(credits.c.run == number)
        .order_by(*in_order_of_measurement(), credits.c.meter)
        .order_by(credits.c.rule, credits.c.step, credits.c.passage)
    )
    return [
        credit_of(row, provenance_of(row, PREFIX)) for row in connection.execute(query).mappings()
    ]


def in_order_of_measurement() -> tuple[ColumnElement[Any], ...]:
    """The order of a run's credits: the provenance measured last comes last; those without a time
    come first."""
    return _measured().asc().nulls_first(), credits.c.provenance


def _measured() -> ScalarSelect[Any]:
    """When the provenance of a credit last measured its run. The time is correlated to each row,
    since a query over all runs takes time in proportion to them."""
    return (
        select(func.max(appraisals.c.measured))
        .where(appraisals.c.run == credits.c.run, appraisals.c.provenance == credits.c.provenance)
        .correlate(credits)
        .scalar_subquery()
    )


def read_appraisals(connection: Connection, number: int) -> list[Appraisal]:
    """Times and costs of measuring the run, the latest last."""
    query = (
        select(appraisals, *(c.label(PREFIX + c.name) for c in provenances.c), runs.c.id)
        .join(provenances, provenances.c.number == appraisals.c.provenance)
        .join(runs, runs.c.number == appraisals.c.run)
        .where(appraisals.c.run == number)
        .order_by(appraisals.c.measured, appraisals.c.provenance)
    )
    return [
        appraisal_of(row, provenance_of(row, PREFIX))
        for row in connection.execute(query).mappings()
    ]


Place = tuple[int, int]
"""The number of a run and the position of a step."""


def _steps(connection: Connection, numbers: Sequence[int]) -> dict[int, list[Step]]:
    """The steps of each run."""
    lists = _placements(connection, numbers)
    by_step = _exchanges(connection, numbers)
    decision_of = _decisions(connection, numbers)
    roles = {"ranked", "new", "shown", "evidence", "dangling"}
    found: dict[int, list[Step]] = defaultdict(list)
    for row in rows_of(connection, steps, *numbers):
        place = row["run"], row["position"]
        step = Step(
            **fields(Step, row, but=roles | {"exchanges", "decision", "usage"}),
            **{role: lists[place, role] for role in roles},
            exchanges=tuple(by_step[place]),
            decision=decision_of.get(place),
            usage=usage_of(row),
        )
        found[row["run"]].append(step)
    return found


def _decisions(connection: Connection, numbers: Sequence[int]) -> dict[Place, Decision]:
    """Decisions of the steps."""
    return {
        (row["run"], row["step"]): Decision(
            **fields(Decision, row, but={"usage"}), usage=usage_of(row)
        )
        for row in rows_of(connection, decisions, *numbers)
    }


def _placements(connection: Connection, numbers: Sequence[int]) -> dict[tuple[Place, str], Any]:
    """The lists of passages and keys of the steps, by role."""
    held = _passages(connection, numbers)
    lists: dict[tuple[Place, str], list[Any]] = defaultdict(list)
    for row in rows_of(connection, placements, *numbers):
        role, item = row["role"], row["key"]
        if row["listing"] is not None:
            passage = held[row["listing"]]
            item = passage if role in ("ranked", "evidence") else passage.key
        if role == "ranked":
            item = Hit(passage=item, score=row["score"])
        lists[(row["run"], row["step"]), role].append(item)
    return lists


def _passages(connection: Connection, numbers: Sequence[int]) -> dict[int, Passage]:
    """The passages of the runs by the number of their listing."""
    query = (
        select(listings.c.number, listings.c.id, listings.c.source, passages.c.title)
        .add_columns(passages.c.text)
        .join(passages, passages.c.number == listings.c.passage)
        .where(listings.c.number.in_(_distinct(placements, "listing", numbers)))
    )
    rows = connection.execute(query).mappings()
    return {row["number"]: Passage(**fields(Passage, row)) for row in rows}


def _exchanges(connection: Connection, numbers: Sequence[int]) -> dict[Place, list[Exchange]]:
    """The exchanges of the steps."""
    by_number = _prompts(connection, numbers)
    replies: dict[tuple[Place, int], list[Generation]] = defaultdict(list)
    for row in rows_of(connection, generations, *numbers):
        generation = Generation(
            **fields(Generation, row, but={"usage", "thought", "refused"}),
            usage=usage_of(row),
            thought=_thought(row),
            refused=row["refused"] or (),
        )
        replies[(row["run"], row["step"]), row["exchange"]].append(generation)
    result: dict[Place, list[Exchange]] = defaultdict(list)
    for row in rows_of(connection, exchanges, *numbers):
        own = fields(GenerationRequest, row, but={"prompt"})
        place = row["run"], row["step"]
        exchange = Exchange(
            request=GenerationRequest(prompt=by_number[row["prompt"]], **own),
            generations=tuple(replies[place, row["position"]]),
            seconds=row["seconds"],
            span_id=row["span_id"],
        )
        result[place].append(exchange)
    return result


def _prompts(connection: Connection, numbers: Sequence[int]) -> dict[int, Prompt]:
    """The prompts of the runs by number."""
    wanted = _distinct(exchanges, "prompt", numbers)
    query = (
        select(messages.c.prompt, messages.c.role, texts.c.text)
        .join(texts, texts.c.number == messages.c.text)
        .where(messages.c.prompt.in_(wanted))
        .order_by(messages.c.prompt, messages.c.position)
    )
    turns: dict[int, list[Message]] = defaultdict(list)
    for prompt, role, content in connection.execute(query):
        turns[prompt].append(Message(role=role, content=content))
    rows = connection.execute(select(prompts).where(prompts.c.number.in_(wanted))).mappings()
    return {
        row["number"]: Prompt(
            messages=tuple(turns[row["number"]]), prefix=row["prefix"], shown=row["shown"]
        )
        for row in rows
    }


def _distinct(table: Table, column: str, numbers: Sequence[int]) -> Select[tuple[int]]:
    return select(table.c[column]).where(table.c.run.in_(numbers)).distinct()


def _thought(row: RowMapping) -> Thought | None:
    if row["thought_end"] is None:
        return None
    return Thought(text=row["thought"], tokens=row["thought_tokens"], end=row["thought_end"])
