"""Hashes of rows, which reveal changes made outside the store.

A seal covers the values of rows as records hold them. It leaves out NULL and database defaults, so
that a column added by a later version breaks no seal.
"""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import Table

from hopscope.runtime.types import digest

_NOT_SEALED = frozenset({"run", "number", "hash"})
"""The place of a row, and its seal."""
_NEGATIVE_ZERO = re.compile(r"-0\.0(?![0-9e])")
"""SQLite loses the sign of zero."""


def seal(rows: Iterable[tuple[Table, Mapping[str, Any]]]) -> str:
    """16 hexadecimal digits for rows of one run, given by column key, in any order."""
    found: list[tuple[str, list[Any], list[Any]]] = []
    for table, row in rows:
        own, sealed = _keys(table)
        values = [
            (key, value)
            for key, default in sealed
            if (value := row.get(key)) is not None and value != default
        ]
        found.append((table.name, [row[key] for key in own], values))
    found.sort(key=_place)
    return digest(_NEGATIVE_ZERO.sub("0.0", json.dumps(found, default=_instant)))[:16]


@cache
def _keys(table: Table) -> tuple[list[str], list[tuple[str, int | None]]]:
    """The columns that identify a row within a run; and all sealed columns, sorted by name, each
    with its database default (None or 0)."""
    own = [column.key for column in table.primary_key if column.key not in _NOT_SEALED]
    sealed = [
        (column.key, None if column.server_default is None else 0)
        for column in table.columns
        if column.key not in _NOT_SEALED
    ]
    return own, sorted(sealed)


def _place(row: tuple[str, list[Any], list[Any]]) -> tuple[str, list[Any]]:
    return row[0], row[1]


def _instant(value: datetime) -> str:
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
