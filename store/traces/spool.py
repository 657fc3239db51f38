"""The traces of files, one at a time, in whatever order their spans come.

Invariant: memory holds one trace; the spans wait in a temporary file, which is deleted at the end.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, Self

from hopscope.store.traces.span import Event, Span

BATCH = 1000


class Spooled(NamedTuple):
    """A span with the place that it was read from."""

    span: Span
    source: int
    """Number of its file."""
    line: int


class Spool:
    """Keeps spans on disk until all are there."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="hopscope-import-")
        self._database = sqlite3.connect(Path(self._folder.name) / "spans.db")
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute(
            "CREATE TABLE spans (trace TEXT, id TEXT, source INT, line INT, body TEXT)"
        )
        self._waiting: list[tuple[str, str, int, int, str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()
        self._folder.cleanup()

    def add(self, span: Span, source: int, line: int) -> None:
        """Keep a span."""
        body = json.dumps(asdict(span), default=str)
        self._waiting.append((span.trace, span.id, source, line, body))
        if len(self._waiting) >= BATCH:
            self._write()

    def traces(self) -> Iterator[list[Spooled]]:
        """The spans of each trace by their start, in the order in which traces began to come. A
        span that came twice counts once, as it came last."""
        self._write()
        self._database.execute("CREATE INDEX by_trace ON spans (trace)")
        firsts = "SELECT trace FROM spans GROUP BY trace ORDER BY min(rowid)"
        with closing(self._database.execute(firsts)) as traces:
            for (trace,) in traces:
                query = "SELECT source, line, body FROM spans WHERE trace = ? ORDER BY rowid"
                with closing(self._database.execute(query, (trace,))) as rows:
                    found = [Spooled(_span(body), source, line) for source, line, body in rows]
                latest = {each.span.id: each for each in found}
                yield sorted(latest.values(), key=lambda each: (each.span.start, -each.span.end))

    def _write(self) -> None:
        self._database.executemany("INSERT INTO spans VALUES (?, ?, ?, ?, ?)", self._waiting)
        self._waiting.clear()


def _span(body: str) -> Span:
    value = json.loads(body)
    events = tuple(Event(**event) for event in value.pop("events"))
    return Span(**value, events=events)
