"""Decisions are rows that can be asked in SQL, and come back with their steps."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import JSON, Column, MetaData, Table, event, text

from hopscope.runtime.errors import StoreError
from hopscope.runtime.types import Decision, Run, Usage
from hopscope.store.database import migrate
from hopscope.store.database.database import Database
from hopscope.store.database.location import resolve
from hopscope.store.store import Store
from tests.store.run_examples import a_run, counts

WORTH = Decision(
    policy="value:1a2b3c4d",
    retrieve=True,
    reason="gain is more than its price",
    retrieval=0,
    stage="draft",
    signals={"margin": 0.1 + 0.2, "retrievals": 0.0},
    gain=0.1 + 0.7,
    low=-1 / 3,
    high=1e-300,
    cost=812.5,
    price=1 / 7919,
    usage=Usage(input_tokens=2**40, output_tokens=9, calls=2),
)
NOT_WORTH = WORTH.model_copy(
    update={"retrieve": False, "retrieval": 1, "stage": "free", "gain": 0.1, "signals": {}}
)
LIMIT = Decision(
    policy="limit:budget_calls", retrieve=False, reason="\x1b[0m \x00 no calls left", retrieval=2
)


def deciding(*decisions: Decision | None, run_id: str = "run-1") -> Run:
    """Of six steps every other one retrieves."""
    run = a_run(run_id)
    given = dict(zip((0, 2, 4), decisions, strict=True))
    steps = [s.model_copy(update={"decision": given.get(s.index)}) for s in run.steps]
    return run.model_copy(update={"steps": tuple(steps)})


def test_they_come_back_with_their_steps(store: Store) -> None:
    run = deciding(WORTH, None, LIMIT)
    store.save(run)
    assert store.load(run.id) == run
    first = store.load(run.id).steps[0].decision
    assert first is not None
    assert list(first.signals) == ["margin", "retrievals"], "shown in the order they came"
    assert counts(store)["decisions"] == 2
    assert store.verify() == []


def test_they_can_be_asked_in_sql(store: Store) -> None:
    store.save_all([deciding(WORTH, NOT_WORTH, LIMIT, run_id="a"), a_run("b")])
    of_each = text(
        "SELECT policy, count(*), avg(predicted_gain), sum(calls) FROM decisions "
        "GROUP BY policy ORDER BY policy"
    )
    stops = text(
        "SELECT runs.id, steps.name, stage, predicted_cost FROM decisions "
        "JOIN runs ON number = decisions.run "
        "JOIN steps ON steps.run = decisions.run AND position = step "
        "WHERE NOT retrieve ORDER BY step"
    )
    signal = {
        "sqlite": "json_extract(signals, '$.margin')",
        "postgresql": "CAST(signals ->> 'margin' AS float)",
    }
    with store._database.reading() as connection:
        assert connection.execute(of_each).all() == [
            ("limit:budget_calls", 1, None, 0),
            ("value:1a2b3c4d", 2, pytest.approx(0.45), 4),
        ]
        assert connection.execute(stops).all() == [
            ("a", "retrieve", "free", 812.5),
            ("a", "retrieve", None, None),
        ]
        query = text(f"SELECT {signal[connection.dialect.name]} FROM decisions ORDER BY step")
        assert connection.execute(query).scalars().all() == [pytest.approx(0.3), None, None]


def test_a_run_that_is_replaced_takes_its_decisions_with_it(store: Store) -> None:
    store.save(deciding(WORTH, WORTH, LIMIT))
    changed = deciding(WORTH, LIMIT, None)
    store.save(changed)
    assert store.load("run-1") == changed
    assert counts(store)["decisions"] == 2
    with store._database.writing() as connection:
        connection.execute(text("DELETE FROM runs"))
    assert counts(store)["decisions"] == 0


def test_a_run_with_decisions_is_read_by_as_many_queries_as_one_without(store: Store) -> None:
    store.save_all([a_run("without"), deciding(WORTH, WORTH, LIMIT, run_id="with")])
    asked: list[str] = []
    engine = store._database._engine
    event.listen(engine, "before_cursor_execute", lambda _c, _cur, sql, *_: asked.append(sql))
    store.load("without")
    without = len(asked)
    store.load("with")
    assert len(asked) == 2 * without
    assert sum("FROM decisions" in sql for sql in asked) == 2


def test_one_that_is_damaged_is_found(store: Store) -> None:
    store.save_all([a_run("whole"), deciding(WORTH, None, None)])
    with store._database.writing() as connection:
        connection.execute(text("UPDATE decisions SET signals = '[1]'"))
    [fault] = store.verify()
    assert (fault.table, fault.row) == ("runs", "run-1")
    with pytest.raises(StoreError, match="is damaged: a row has changed since it was written"):
        store.load("run-1")


def test_one_belongs_to_a_step(store: Store) -> None:
    store.save(deciding(WORTH, None, None))
    with pytest.raises(StoreError, match=r"(?i)foreign key"), store._database.writing() as rows:
        rows.execute(text("UPDATE decisions SET step = 9"))


Stood = list[dict[str, object] | None]
"""Decisions of the steps of a run as m007 kept them."""
KEPT_BY_M007: dict[str, object] = {
    "policy": "value:1a2b3c4d",
    "retrieve": True,
    "reason": "by \x1b signals \x00 up to 'draft'",
    "retrieval": 1,
    "signals": {"margin": 0.1 + 0.2, "retrievals": 1.0},
    "gain": 5e-324,
    "low": -1 / 3,
    "high": 0.1 + 0.7,
    "cost": 812.0,
    "price": 1 / 7919,
    "usage": {"input_tokens": 2**40, "output_tokens": 9, "calls": 2},
}
REFUSED_BY_M007: dict[str, object] = {
    "policy": "limit:budget_calls",
    "retrieve": False,
    "reason": "no calls left",
    "retrieval": 2,
    "signals": {},
    **dict.fromkeys(("gain", "low", "high", "cost", "price")),
    "usage": {"input_tokens": 0, "output_tokens": 0, "calls": 0},
}


def as_m007_had_it(decision: Decision) -> dict[str, object]:
    """There were no stages then, and no thoughts."""
    later = {"thinking_tokens", "cached_tokens", "uncounted"}
    return decision.model_dump(exclude={"stage": True, "usage": later})


def test_decisions_kept_by_m007_move(url: str) -> None:
    """In batches, with every digit and letter; steps without one stay without, and what refers to
    steps stays."""
    stood: list[Stood] = [
        [None, KEPT_BY_M007, None, REFUSED_BY_M007, KEPT_BY_M007],
        [None],
        [KEPT_BY_M007 | {"retrieval": i} for i in range(2500)],
    ]
    kept_by_m007(url, stood)
    with Store.open(url) as store:
        assert store.found == "m007"
        found = [
            [step.decision and as_m007_had_it(step.decision) for step in run.steps]
            for run in map(store.load, store.ids())
        ]
        assert found == stood
        assert (counts(store)["decisions"], counts(store)["placements"]) == (2503, 2506)
        assert store.verify() == []


def kept_by_m007(url: str, found: list[Stood]) -> None:
    """Make the database as m007 has it, with runs of steps that hold these decisions and a key of
    a passage each."""
    database = Database(resolve(url))
    database.prepare()
    with database.migrating() as connection:
        migrate.run_alembic(connection, "m007")
    begun = {"started": datetime(2026, 11, 21, tzinfo=UTC), "seconds": 0.1, "span_id": ""}
    names = ("question", "question_id", "workflow", "reader", "retriever", "trace_id")
    run = {**dict.fromkeys(names, ""), "answers": [], "options": {}, "seed": "0", "status": "ok"}
    step = {"name": "retrieve", "kind": "retrieve", **Usage().model_dump()}
    with database.writing() as connection:
        tables = MetaData()
        decided = Column("decision", JSON(none_as_null=True))
        runs = Table("runs", tables, autoload_with=connection)
        steps = Table("steps", tables, decided, autoload_with=connection)
        placements = Table("placements", tables, autoload_with=connection)
        for number, stood in enumerate(found):
            connection.execute(runs.insert(), run | begun | {"number": number, "id": f"r{number}"})
            taken = [{"position": i, "index": i, "decision": each} for i, each in enumerate(stood)]
            connection.execute(steps.insert(), [step | begun | {"run": number} | t for t in taken])
            key = {"run": number, "role": "new", "rank": 0, "key": "p"}
            connection.execute(placements.insert(), [key | {"step": t["position"]} for t in taken])
    database.close()
