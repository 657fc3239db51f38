"""Queries in, rankings out: the forms in which `hopscope index search` reads and prints."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from hopscope.cli import render
from hopscope.cli.grid import Column, Grid
from hopscope.runtime.errors import UsageError

if TYPE_CHECKING:
    from hopscope.runtime.types import Hit

TAG = "hopscope"
SHOWN = 100
"""Characters of a text in the table."""


def read(given: Sequence[str], file: Path | None) -> list[tuple[str, str]]:
    """Ids and queries, from the command line or a file of them.

    Raises:
        UsageError: there are none, both are given, one is empty, or a line has no tab.
    """
    if bool(given) == (file is not None):
        raise UsageError("give queries, or a file of them with --queries")
    if file is None:
        if not all(query.strip() for query in given):
            raise UsageError("a query is empty: give what to search for")
        return [(str(number), query) for number, query in enumerate(given, 1)]
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None
    pairs = [_pair(file, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not pairs:
        raise UsageError(f"{file} has no queries")
    return pairs


def _pair(file: Path, number: int, line: str) -> tuple[str, str]:
    id, tab, query = line.partition("\t")
    if not (id.strip() and tab):
        raise UsageError(f"{file}, line {number}: an id, a tab and a query are needed")
    return id.strip(), query


def trec(id: str, query: str, ranking: "Sequence[Hit]") -> Iterator[str]:
    """Lines of a TREC run."""
    from hopscope.lab.export.trec import word

    for rank, hit in enumerate(ranking, 1):
        yield f"{word(id)} Q0 {word(hit.passage.id)} {rank} {hit.score:.6f} {TAG}"


def as_json(id: str, query: str, ranking: "Sequence[Hit]") -> Iterator[str]:
    """One object for each query."""
    hits = [{"score": hit.score, **hit.passage.model_dump()} for hit in ranking]
    yield render.as_json({"id": id, "query": query, "hits": hits})


def table(id: str, query: str, ranking: "Sequence[Hit]") -> Iterator[str | Grid]:
    """What a person reads."""
    yield f"{render.plain(id)}  {render.plain(query)}"
    rows = []
    for rank, hit in enumerate(ranking, 1):
        title, text = render.plain(hit.passage.title), render.plain(hit.passage.text)
        told = f"{title}: {text}" if title else text
        cut = told if len(told) <= SHOWN else f"{told[: SHOWN - 1]}…"
        rows.append(
            (f"{rank:>4}", f"{hit.score:.4f}", Text(render.plain(hit.passage.id)), Text(cut))
        )
    if rows:
        columns = [
            Column("rank"),
            Column("score", 1, right=True),
            Column("passage", wraps=16),
            Column("text", wraps=30),
        ]
        yield Grid(columns, rows, headed=False)
    else:
        yield "      nothing found"
