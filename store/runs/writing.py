"""Write records as rows; `store.runs.reading` reads back equal records."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, select, update

from hopscope.runtime.types import (
    Appraisal,
    Credit,
    Decision,
    Exchange,
    Passage,
    Run,
    Step,
    Thought,
    Usage,
)
from hopscope.store.database.schema import (
    WHOLE_RUN,
    WHOLE_STEP,
    appraisals,
    credits,
    decisions,
    exchanges,
    games,
    generations,
    placements,
    runs,
    steps,
    totals,
)
from hopscope.store.runs.interning import (
    insert,
    intern_passages,
    intern_prompts,
    intern_provenances,
)
from hopscope.store.runs.reading import read_run
from hopscope.store.runs.seals import seal
from hopscope.store.runs.totals import lock, refresh_totals

Row = dict[str, Any]


def write_runs(connection: Connection, new: Iterable[Run]) -> None:
    """Insert the runs; an equal stored run stays untouched.

    A stored run of the same id that differs, such as the first part of a resumed run, is replaced,
    and its credits and coalition values are deleted: they were measured on steps that no longer
    exist.
    """
    # In a fixed order, so that two processes never deadlock; shared rows are inserted once for all
    # runs, for the same reason.
    distinct = sorted({run.id: run for run in new}.items())
    changed = [(_number(connection, run), run) for _, run in distinct]
    _write_steps(connection, [(number, run) for number, run in changed if number is not None])


def write_measured(
    connection: Connection,
    numbers: Mapping[str, int],
    new: Sequence[Credit],
    measured: Iterable[Appraisal],
) -> None:
    """Insert credits for the runs of these numbers, replacing any with the same run, step, passage,
    rule, meter and provenance, and the times and costs of measuring them, replacing earlier
    records; the totals of the runs follow."""
    lock(connection, numbers.values())
    _write_credits(connection, numbers, new)
    for appraisal in measured:
        _write_appraisal(connection, numbers[appraisal.run_id], appraisal)
    refresh_totals(connection, numbers.values())


def _write_credits(
    connection: Connection, numbers: Mapping[str, int], new: Sequence[Credit]
) -> None:
    provenances = intern_provenances(connection, (credit.provenance for credit in new))
    rows: dict[tuple[object, ...], Row] = {}
    for credit in new:
        key = {
            "run": numbers[credit.run_id],
            "step": WHOLE_RUN if credit.step is None else credit.step,
            "passage": credit.passage or WHOLE_STEP,
            "rule": credit.rule,
            "meter": credit.meter,
            "provenance": provenances[credit.provenance.settings_hash],
        }
        row = key | credit.measurement.model_dump()
        rows[tuple(key.values())] = row | {"hash": seal([(credits, row)])}
    if not rows:
        return
    statement = insert(connection, credits)
    keys = [column.name for column in credits.primary_key]
    values = {c.name: c for c in statement.excluded if c.name not in keys}
    connection.execute(
        statement.on_conflict_do_update(index_elements=keys, set_=values),
        [rows[key] for key in sorted(rows, key=repr)],
    )


def _write_appraisal(connection: Connection, number: int, appraisal: Appraisal) -> None:
    provenance = appraisal.provenance
    numbers = intern_provenances(connection, [provenance])
    key = {"run": number, "provenance": numbers[provenance.settings_hash]}
    own = {
        "measured": appraisal.measured,
        "seconds": appraisal.seconds,
        "pairs": appraisal.pairs and appraisal.pairs.model_dump(),
    }
    row = key | own | _usage_row(appraisal.usage)
    statement = insert(connection, appraisals)
    keys = [column.name for column in appraisals.primary_key]
    values = {c.name: c for c in statement.excluded if c.name not in keys}
    connection.execute(
        statement.on_conflict_do_update(index_elements=keys, set_=values),
        row | {"hash": seal([(appraisals, row)])},
    )


def _number(connection: Connection, run: Run) -> int | None:
    """The number of the run's row if its steps must be written; None if an equal run is stored."""
    row = _run_row(run)
    statement = insert(connection, runs).on_conflict_do_nothing().returning(runs.c.number)
    number: int | None = connection.execute(statement, row).scalar()
    if number is not None:
        return number
    there = select(runs.c.number).where(runs.c.id == run.id).with_for_update()
    number = connection.execute(there).scalar_one()
    if read_run(connection, number) == run:
        return None
    connection.execute(update(runs).where(runs.c.number == number), row)
    connection.execute(delete(steps).where(steps.c.run == number))
    connection.execute(delete(credits).where(credits.c.run == number))
    connection.execute(delete(appraisals).where(appraisals.c.run == number))
    connection.execute(delete(totals).where(totals.c.run == number))
    connection.execute(delete(games).where(games.c.run == number))
    return number


def _write_steps(connection: Connection, numbered: Sequence[tuple[int, Run]]) -> None:
    taken = [(number, run.steps) for number, run in numbered]
    every = [step for _, found in taken for step in found]
    listings = intern_passages(connection, (p for step in every for p in _passages(step)))
    asked = (exchange.request.prompt for step in every for exchange in step.exchanges)
    prompts = intern_prompts(connection, asked)
    tables = (steps, decisions, placements, exchanges, generations)
    rows: dict[Table, list[Row]] = {table: [] for table in tables}
    for number, found in taken:
        held = [p for step in found for p in _passages(step)]
        by_key = {passage.key: listings[passage] for passage in reversed(held)}
        for position, step in enumerate(found):
            of_step = {"run": number, "step": position}
            rows[steps].append(_step_row(step) | {"run": number, "position": position})
            if step.decision is not None:
                rows[decisions].append(of_step | _decision_row(step.decision))
            rows[placements] += [of_step | row for row in _placement_rows(step, listings, by_key)]
            for place, exchange in enumerate(step.exchanges):
                row = of_step | {"position": place, "prompt": prompts[exchange.request.prompt]}
                rows[exchanges].append(_exchange_row(exchange) | row)
                rows[generations] += [
                    of_step | {"exchange": place} | row for row in _generation_rows(exchange)
                ]
    for table, added in rows.items():
        if added:
            connection.execute(table.insert(), added)
    of_run = {number: [(runs, _run_row(run))] for number, run in numbered}
    for table, added in rows.items():
        for row in added:
            of_run[row["run"]].append((table, row))
    sealed = [{"of": number, "seal": seal(found)} for number, found in of_run.items()]
    if sealed:
        connection.execute(
            update(runs).where(runs.c.number == bindparam("of")).values(hash=bindparam("seal")),
            sealed,
        )


def _passages(step: Step) -> list[Passage]:
    return [*(hit.passage for hit in step.ranked), *step.evidence]


def _run_row(run: Run) -> Row:
    row = run.model_dump(exclude={"question", "steps", "error"})
    return row | {
        "question": run.question.text,
        "answers": list(run.question.answers),
        "question_id": run.question.id,
        "error_type": run.error and run.error.type,
        "error_message": run.error and run.error.message,
    }


def _step_row(step: Step) -> Row:
    names = {"index", "name", "kind", "query", "output", "parse_ok", "stop_reason"}
    row = step.model_dump(include=names | {"started", "seconds", "span_id"})
    return row | _usage_row(step.usage)


def _decision_row(decision: Decision) -> Row:
    return decision.model_dump(exclude={"usage"}) | _usage_row(decision.usage)


def _placement_rows(
    step: Step, listings: Mapping[Passage, int], by_key: Mapping[str, int]
) -> list[Row]:
    rows = [
        _placed("ranked", rank, listings[hit.passage], score=hit.score)
        for rank, hit in enumerate(step.ranked)
    ]
    rows += [
        _placed("evidence", rank, listings[passage]) for rank, passage in enumerate(step.evidence)
    ]
    for role in ("new", "shown", "dangling"):
        for rank, key in enumerate(getattr(step, role)):
            listing = by_key.get(key)
            rows.append(_placed(role, rank, listing, key=key if listing is None else None))
    return rows


def _placed(
    role: str,
    rank: int,
    listing: int | None,
    *,
    key: str | None = None,
    score: float | None = None,
) -> Row:
    return {"role": role, "rank": rank, "listing": listing, "key": key, "score": score}


def _exchange_row(exchange: Exchange) -> Row:
    request = exchange.request
    row = request.model_dump(include={"n", "temperature", "max_tokens", "seed", "thought", "keeps"})
    own = {"seconds": exchange.seconds, "span_id": exchange.span_id}
    return row | own | {"stop": list(request.stop)}


def _generation_rows(exchange: Exchange) -> list[Row]:
    return [
        generation.model_dump(exclude={"usage", "thought"})
        | _usage_row(generation.usage)
        | _thought_row(generation.thought)
        | {
            "position": position,
            "tokens": list(generation.tokens),
            "refused": list(generation.refused) or None,
        }
        for position, generation in enumerate(exchange.generations)
    ]


def _thought_row(thought: Thought | None) -> Row:
    text, tokens, end = (thought.text, thought.tokens, thought.end) if thought else (None,) * 3
    return {"thought": text, "thought_tokens": tokens, "thought_end": end}


def _usage_row(usage: Usage) -> Row:
    return usage.model_dump()
