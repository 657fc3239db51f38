"""The values of coalitions in SQL.

Invariant: what is stored of a game only grows. Values of coalitions that a later measurement with
the same settings did not need stay.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, update

from hopscope.runtime.types import (
    AnswerGroup,
    AnswerToken,
    CoalitionValue,
    GameValues,
    MeasuredAnswers,
    Measurement,
)
from hopscope.store.database.schema import (
    ALL_PASSAGES,
    WHOLE_RUN,
    coalition_values,
    coalitions,
    games,
    provenances,
    runs,
    texts,
)
from hopscope.store.runs.interning import (
    chunks,
    insert,
    intern_coalitions,
    intern_provenances,
    intern_texts,
)
from hopscope.store.runs.rows import PREFIX, fields, provenance_of
from hopscope.store.runs.seals import seal

Row = dict[str, Any]


def write_games(
    connection: Connection, numbers: Mapping[str, int], new: Iterable[GameValues]
) -> None:
    """Store the values for the runs of these numbers, beside the earlier values of the same
    games."""
    found = list(new)
    if not found:
        return
    known = intern_provenances(connection, (game.provenance for game in found))
    given: dict[tuple[int, int, str, int], list[GameValues]] = defaultdict(list)
    for game in found:
        provenance = known[game.provenance.settings_hash]
        given[numbers[game.run_id], provenance, game.meter, _step(game)].append(game)
    # In a fixed order, so that two processes never deadlock.
    ordered = {key: given[key] for key in sorted(given)}
    places = {key: _claim(connection, key, each[-1]) for key, each in ordered.items()}
    before = _by_number(connection, places.values())
    merged = {places[key]: _merged([*before[places[key]], *each]) for key, each in ordered.items()}
    values = [value for game in merged.values() for value in game.values]
    sets = intern_coalitions(connection, (value.members for value in values))
    named = intern_texts(connection, (value.measurement.estimator for value in values))
    rows: list[Row] = []
    sealed: list[Row] = []
    for (_, provenance, meter, step), number in places.items():
        game = merged[number]
        own = [
            {"game": number, "coalition": sets[value.members], "evidence": value.evidence}
            | value.measurement.model_dump()
            | {"estimator": named[value.measurement.estimator]}
            | {"unseen": list(value.unseen) or None}
            for value in game.values
        ]
        whole = _row(game) | {"provenance": provenance, "meter": meter, "step": step}
        hash = seal([(games, whole), *((coalition_values, row) for row in own)])
        sealed.append({**_row(game), "of": number, "seal": hash})
        rows += own
    for chunk in chunks(places.values()):
        connection.execute(delete(coalition_values).where(coalition_values.c.game.in_(chunk)))
    if rows:
        connection.execute(coalition_values.insert(), rows)
    changes: Row = {name: bindparam(name) for name in _row(found[0])}
    statement = update(games).where(games.c.number == bindparam("of"))
    connection.execute(statement.values(**changes, hash=bindparam("seal")), sealed)


def read_games(connection: Connection, run: int) -> list[GameValues]:
    """All values of the run of this number, the games that were measured first first."""
    query = select(games.c.number).where(games.c.run == run).order_by(games.c.number)
    numbers = list(connection.execute(query).scalars())
    found = _by_number(connection, numbers)
    return [game for number in numbers for game in found[number]]


def _step(game: GameValues) -> int:
    if game.step is not None:
        return game.step
    return ALL_PASSAGES if game.keys else WHOLE_RUN


def _row(game: GameValues) -> Row:
    row = game.model_dump(include={"members", "players", "remark", "comparable", "measured"})
    return row | {"keys": list(game.keys) or None, "answers": _answers_row(game)}


def _answers_row(game: GameValues) -> Row | None:
    """The answers by evidence, as lists in the order of the records' fields."""
    found: Row = {}
    for value in game.values:
        if value.evidence is not None and value.answers is not None:
            tokens = [[t.text, t.value, t.without, int(t.key)] for t in value.answers.tokens]
            groups = [[g.answer, g.mass, int(g.right)] for g in value.answers.groups]
            found[value.evidence] = [tokens, groups]
    return found or None


def _answers_of(row: list[Any] | None) -> MeasuredAnswers | None:
    if row is None:
        return None
    tokens, groups = row
    return MeasuredAnswers(
        tokens=tuple(
            AnswerToken(text=text, value=value, without=without, key=bool(key))
            for text, value, without, key in tokens
        ),
        groups=tuple(
            AnswerGroup(answer=answer, mass=mass, right=bool(right))
            for answer, mass, right in groups
        ),
    )


def _claim(connection: Connection, key: tuple[int, int, str, int], game: GameValues) -> int:
    """The number of the game's row, which is locked until the transaction ends."""
    run, provenance, meter, step = key
    row = {"run": run, "provenance": provenance, "meter": meter, "step": step}
    statement = insert(connection, games).on_conflict_do_nothing().returning(games.c.number)
    number: int | None = connection.execute(statement, row | _row(game)).scalar()
    if number is not None:
        return number
    same = [games.c[name] == value for name, value in row.items()]
    there = select(games.c.number).where(*same).with_for_update()
    return int(connection.execute(there).scalar_one())


def _merged(measured: Sequence[GameValues]) -> GameValues:
    """One game with the values of all; later values replace earlier ones, and keep their answers
    where they have none of their own."""
    values: dict[tuple[int, ...], CoalitionValue] = {}
    for value in (value for game in measured for value in game.values):
        before = values.get(value.members)
        if value.answers is None and before is not None and before.evidence == value.evidence:
            value = value.model_copy(update={"answers": before.answers})
        values[value.members] = value
    count = max(len(values), *(game.measured for game in measured))
    return measured[-1].model_copy(
        update={
            "values": tuple(values[key] for key in sorted(values, key=_place)),
            "measured": count,
        }
    )


def _place(members: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return len(members), members


def _by_number(connection: Connection, numbers: Iterable[int]) -> dict[int, list[GameValues]]:
    """The game of each row that has values, as a list of one."""
    found: dict[int, list[GameValues]] = defaultdict(list)
    for chunk in chunks(numbers):
        values: dict[int, list[CoalitionValue]] = defaultdict(list)
        told = select(games.c.number, games.c.answers).where(games.c.number.in_(chunk))
        answers = {number: found or {} for number, found in connection.execute(told)}
        query = (
            select(coalition_values, coalitions.c.members, texts.c.text.label("named"))
            .join(coalitions, coalitions.c.number == coalition_values.c.coalition)
            .join(texts, texts.c.number == coalition_values.c.estimator)
            .where(coalition_values.c.game.in_(chunk))
        )
        for row in connection.execute(query).mappings():
            own = fields(Measurement, row, but=("estimator",))
            value = CoalitionValue(
                members=row["members"],
                evidence=row["evidence"],
                measurement=Measurement(estimator=row["named"], **own),
                unseen=tuple(row["unseen"] or ()),
                answers=_answers_of(answers[row["game"]].get(row["evidence"])),
            )
            values[row["game"]].append(value)
        wanted = (
            select(
                *(column for column in games.c if column is not games.c.answers),
                *(c.label(PREFIX + c.name) for c in provenances.c),
                runs.c.id,
            )
            .join(provenances, provenances.c.number == games.c.provenance)
            .join(runs, runs.c.number == games.c.run)
            .where(games.c.number.in_(list(values)))
        )
        for row in connection.execute(wanted).mappings():
            own_values = sorted(values[row["number"]], key=lambda value: _place(value.members))
            found[row["number"]] = [
                GameValues(
                    run_id=row["id"],
                    provenance=provenance_of(row, PREFIX),
                    meter=row["meter"],
                    step=None if row["step"] in (WHOLE_RUN, ALL_PASSAGES) else row["step"],
                    keys=tuple(row["keys"] or ()),
                    members=row["members"],
                    players=row["players"],
                    remark=row["remark"],
                    comparable=row["comparable"],
                    measured=row["measured"],
                    values=tuple(own_values),
                )
            ]
    return found
