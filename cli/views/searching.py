"""The forms in which `hopscope index search` prints rankings."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from hopscope.api.views import render
from hopscope.api.views.grid import Column, Grid

if TYPE_CHECKING:
    from hopscope.runtime.types import Hit

TAG = "hopscope"
SHOWN = 100
"""Characters of a text in the table."""


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
    """The table for a terminal."""
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
