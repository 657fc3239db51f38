"""Turns the expression that names a retriever on the command line into the retriever.

    NAME = hopland | FOLDER | KIND:WHERE

`hopland` is the embedded world, FOLDER that of an index; KIND is one of `hopscope list retrievers`
and WHERE what it needs first: the folder of its index, or the address of its service. The grammar
is that of `runtime.expression`.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from hopscope.cli import render, wiring
from hopscope.runtime.errors import UsageError

if TYPE_CHECKING:
    from hopscope.runtime.expression import Expression
    from hopscope.runtime.ports import Reader, Retriever

EMBEDDED = frozenset({wiring.HOPLAND, f"bm25:{wiring.HOPLAND}"})


def parse(spec: str) -> "Expression":
    """The expression, with all mistakes told that cost nothing to find.

    The folder of an index may have any name.

    Raises:
        UsageError: it is no expression, or names components that are not there.
    """
    from hopscope.runtime import composition
    from hopscope.runtime.expression import Source
    from hopscope.runtime.expression_parser import parse

    if _is_index(spec):
        return Source(spec)
    expression = parse(spec)
    composition.check(expression)
    return expression


def embedded_only(spec: str) -> bool:
    """Whether nothing but the embedded world is searched."""
    from hopscope.runtime.expression import sources

    return EMBEDDED.issuperset(sources(parse(spec)))


def size(spec: str) -> int | None:
    """How many passages it gives by its own numbers; None where it leaves that open."""
    from hopscope.runtime import expression

    return expression.size(parse(spec)) or None


def retriever(spec: str, reader: "Reader", *, seed: int) -> "Retriever":
    """Open all that an expression names.

    Raises:
        UsageError: as `parse`, or a source is not there.
        RetrieverError: an index is damaged.
    """
    from hopscope.runtime.composition import Parts, compose
    from hopscope.tracing.meters.grogu import GroGU

    parts = Parts(source=source, reader=reader, other_reader=wiring.reader, meter=GroGU, seed=seed)
    return compose(parse(spec), parts)


def searcher(spec: str, reader: str) -> "Retriever":
    """Open all that an expression names; the reader, a name, is loaded only if there are stages.

    Raises:
        UsageError, RetrieverError: as `retriever`.
    """
    from hopscope.runtime.expression import Source

    expression = parse(spec)
    if isinstance(expression, Source):
        return source(expression.name)
    return retriever(spec, wiring.reader(reader), seed=0)


def source(name: str) -> "Retriever":
    """Open one index or service.

    Raises:
        UsageError: there is none of that name.
    """
    from hopscope.runtime import components, retrievers

    kind, colon, where = name.partition(":")
    if name in EMBEDDED:
        return wiring.corpus(wiring.HOPLAND)
    if _is_index(name) or not colon or kind not in components.names(retrievers):
        return wiring.corpus(name)
    if where == wiring.HOPLAND and not _is_index(where):
        raise UsageError(
            f"{name}: the embedded world comes with a BM25 index only, named {wiring.HOPLAND}"
        )
    opened: Retriever = components.named(retrievers, name)()
    return opened


def tell_cut(retriever: "Retriever") -> None:
    """Say on stderr if queries were longer than an encoder reads."""
    from hopscope.runtime.stages import Cutting

    if isinstance(retriever, Cutting) and (cut := retriever.queries_cut):
        what = "query is" if cut == 1 else "queries are"
        render.note(f"{cut:,} {what} longer than the encoder reads; the end was left out")


def _is_index(folder: str) -> bool:
    try:
        return (Path(folder) / "manifest.json").is_file()
    except OSError:  # a long expression is no name of a file at all
        return False
