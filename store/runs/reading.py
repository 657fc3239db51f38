"""Read records of one run with one query for each table."""

from collections import defaultdict
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
    row = connection.execute(select(runs).where(runs.c.number == number)).mappings().one()
    error = None
    if row["error_type"] is not None:
        error = RunError(type=row["error_type"], message=row["error_message"])
    question = Question(text=row["question"], answers=row["answers"], id=row["question_id"])
    own = fields(Run, row, but={"question", "steps", "error"})
    return Run(question=question, error=error, steps=_steps(connection, number), **own)


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


def _steps(connection: Connection, number: int) -> tuple[Step, ...]:
    lists = _placements(connection, number)
    by_step = _exchanges(connection, number)
    decision_of = _decisions(connection, number)
    roles = {"ranked", "new", "shown", "evidence", "dangling"}
    return tuple(
        Step(
            **fields(Step, row, but=roles | {"exchanges", "decision", "usage"}),
            **{role: lists[row["position"], role] for role in roles},
            exchanges=tuple(by_step[row["position"]]),
            decision=decision_of.get(row["position"]),
            usage=usage_of(row),
        )
        for row in rows_of(connection, steps, number)
    )


def _decisions(connection: Connection, number: int) -> dict[int, Decision]:
    """Decisions of the steps, by position."""
    return {
        row["step"]: Decision(**fields(Decision, row, but={"usage"}), usage=usage_of(row))
        for row in rows_of(connection, decisions, number)
    }


def _placements(connection: Connection, number: int) -> dict[tuple[int, str], Any]:
    """The lists of passages and keys of the steps, by position and role."""
    held = _passages(connection, number)
    lists: dict[tuple[int, str], list[Any]] = defaultdict(list)
    for row in rows_of(connection, placements, number):
        role, item = row["role"], row["key"]
        if row["listing"] is not None:
            passage = held[row["listing"]]
            item = passage if role in ("ranked", "evidence") else passage.key
        if role == "ranked":
            item = Hit(passage=item, score=row["score"])
        lists[row["step"], role].append(item)
    return lists


def _passages(connection: Connection, number: int) -> dict[int, Passage]:
    """The passages of a run by the number of their listing."""
    query = (
        select(listings.c.number, listings.c.id, listings.c.source, passages.c.title)
        .add_columns(passages.c.text)
        .join(passages, passages.c.number == listings.c.passage)
        .where(listings.c.number.in_(_distinct(placements, "listing", number)))
    )
    rows = connection.execute(query).mappings()
    return {row["number"]: Passage(**fields(Passage, row)) for row in rows}


def _exchanges(connection: Connection, number: int) -> dict[int, list[Exchange]]:
    """The exchanges of the steps, by position."""
    by_number = _prompts(connection, number)
    replies: dict[tuple[int, int], list[Generation]] = defaultdict(list)
    for row in rows_of(connection, generations, number):
        generation = Generation(
            **fields(Generation, row, but={"usage", "thought", "refused"}),
            usage=usage_of(row),
            thought=_thought(row),
            refused=row["refused"] or (),
        )
        replies[row["step"], row["exchange"]].append(generation)
    result: dict[int, list[Exchange]] = defaultdict(list)
    for row in rows_of(connection, exchanges, number):
        own = fields(GenerationRequest, row, but={"prompt"})
        exchange = Exchange(
            request=GenerationRequest(prompt=by_number[row["prompt"]], **own),
            generations=tuple(replies[row["step"], row["position"]]),
            seconds=row["seconds"],
            span_id=row["span_id"],
        )
        result[row["step"]].append(exchange)
    return result


def _prompts(connection: Connection, number: int) -> dict[int, Prompt]:
    """The prompts of a run by number."""
    wanted = _distinct(exchanges, "prompt", number)
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


def _distinct(table: Table, column: str, number: int) -> Select[tuple[int]]:
    return select(table.c[column]).where(table.c.run == number).distinct()


def _thought(row: RowMapping) -> Thought | None:
    if row["thought_end"] is None:
        return None
    return Thought(text=row["thought"], tokens=row["thought_tokens"], end=row["thought_end"])
