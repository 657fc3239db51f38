"""Hashes of rows, so that a change behind the store's back is found.

A seal is over the values of rows as the records have them. Values that say nothing (NULL, 0, empty)
are left out, so that a column which a later version adds with such a default breaks no seal.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import Table

from hopscope.runtime.types import digest

_NOT_SEALED = frozenset({"run", "number", "hash"})
"""Where a row is and its seal."""


def seal(rows: Iterable[tuple[Table, Mapping[str, Any]]]) -> str:
    """16 hexadecimal digits for rows of one run, by the keys of their columns and in any order."""
    found: list[tuple[str, list[Any], list[Any]]] = []
    for table, row in rows:
        own, all_keys = _keys(table)
        said = [(key, value) for key in all_keys if (value := row.get(key))]
        found.append((table.name, [row[key] for key in own], said))
    found.sort(key=_place)
    # SQLite forgets the sign of zero.
    return digest(json.dumps(found, default=_instant).replace("-0.0", "0.0"))[:16]


@cache
def _keys(table: Table) -> tuple[list[str], list[str]]:
    """Of the columns that tell a row of a run from its others, and of all that are sealed, by name
    in an order that does not change."""
    own = [column.key for column in table.primary_key if column.key not in _NOT_SEALED]
    return own, sorted(column.key for column in table.columns if column.key not in _NOT_SEALED)


def _place(row: tuple[str, list[Any], list[Any]]) -> tuple[str, list[Any]]:
    return row[0], row[1]


def _instant(value: datetime) -> str:
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
