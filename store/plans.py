"""Query plans of an operation, to check its use of indexes."""

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import event

from hopscope.store.store import Store


class QueryPlan(NamedTuple):
    """A query and the steps of its plan, in the database's words."""

    sql: str
    steps: tuple[str, ...]


def plans(store: Store, act: Callable[[], object]) -> list[QueryPlan]:
    """Run `act` and explain each of its queries to `store`, once.

    On SQLite a step that begins with SCAN reads a whole table or index, one that begins with
    SEARCH a part.
    """
    queries: dict[str, Any] = {}

    def note(_connection: Any, _cursor: Any, sql: str, values: Any, *_: Any) -> None:
        if sql.startswith(("SELECT", "WITH")):
            queries.setdefault(sql, values)

    engine = store._database._engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        act()
    finally:
        event.remove(engine, "before_cursor_execute", note)
    explain = "EXPLAIN QUERY PLAN" if engine.dialect.name == "sqlite" else "EXPLAIN"
    with store._database.reading() as connection:

        def explained(sql: str) -> QueryPlan:
            rows = connection.exec_driver_sql(f"{explain} {sql}", queries[sql])
            return QueryPlan(sql, tuple(row[-1] for row in rows))

        return [explained(sql) for sql in queries]
