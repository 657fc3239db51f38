"""Opens the retriever that an expression names.

    NAME = hopland | FOLDER | KIND:WHERE

`hopland` is the embedded world, FOLDER that of an index; KIND is one of `hopscope list retrievers`
and WHERE what it needs first: the folder of its index, or the address of its service. The grammar
is that of `runtime.pipelines.expression`.
"""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from hopscope.api import parts
from hopscope.runtime.errors import UsageError
from hopscope.runtime.specs import Spec
from hopscope.runtime.texts.counting import counted

if TYPE_CHECKING:
    from hopscope.runtime.pipelines.expression import Expression
    from hopscope.runtime.ports import Reader, Retriever
_log = logging.getLogger(__name__)

EMBEDDED = frozenset({parts.HOPLAND, f"bm25:{parts.HOPLAND}"})


def parse(spec: str) -> "Expression":
    """Parse the expression and check its names.

    The folder of an index may have any name.

    Raises:
        UsageError: it is no expression, or names unknown components.
    """
    from hopscope.runtime.pipelines import composition
    from hopscope.runtime.pipelines.expression import Source
    from hopscope.runtime.pipelines.expression_parser import parse

    if _is_index(spec):
        return Source(spec)
    expression = parse(spec)
    composition.check(expression)
    return expression


def embedded_only(expression: "Expression") -> bool:
    """Whether only the embedded world is searched."""
    from hopscope.runtime.pipelines.expression import sources

    return EMBEDDED.issuperset(sources(expression))


def size(expression: "Expression") -> int | None:
    """The number of passages that the expression sets; None if it sets none."""
    from hopscope.runtime.pipelines.expression import size as passages

    return passages(expression) or None


def depth(workflow: str, expression: "Expression") -> dict[str, str]:
    """The option `k` of a workflow, where it has one and the expression says how many passages it
    gives. Workflows that choose among candidates have a k that says how many to choose."""
    if not parts.takes(workflow, "k") or parts.takes(workflow, "candidates"):
        return {}
    found = size(expression)
    return {} if found is None else {"k": str(found)}


def retriever(expression: "Expression", reader: "Reader", *, seed: int) -> "Retriever":
    """Open the retriever that an expression names.

    Raises:
        UsageError: a source is missing.
        RetrieverError: an index is damaged.
    """
    from hopscope.runtime.pipelines.composition import Parts, compose
    from hopscope.tracing.meters.grogu import GroGU

    given = Parts(
        source=source,
        reader=reader,
        other_reader=parts.reader,
        meter=lambda reader, prompts: GroGU(reader, prompts=prompts.option),
        seed=seed,
    )
    return compose(expression, given)


def searcher(expression: "Expression", reader: str) -> "Retriever":
    """Open the retriever that an expression names; the named reader is loaded only for stages.

    Raises:
        UsageError, RetrieverError: as `retriever`.
    """
    from hopscope.runtime.pipelines.expression import Source

    if isinstance(expression, Source):
        return source(expression.name)
    return retriever(expression, parts.reader(reader), seed=0)


def source(name: str) -> "Retriever":
    """Open one index or service.

    Raises:
        UsageError: there is none of that name.
    """
    from hopscope.runtime import code_files, components, retrievers

    if name in EMBEDDED:
        return parts.corpus(parts.HOPLAND)
    if _is_index(name):
        return parts.corpus(name)
    spec = Spec.parse(name, options=False)
    # The embedded retrievers need a place; one from another package may be named alone.
    alone = name in components.own(retrievers)
    known = code_files.is_code(spec.name) or spec.name in components.names(retrievers)
    if alone or not known:
        return parts.corpus(name)
    if spec.argument == parts.HOPLAND and not _is_index(spec.argument):
        raise UsageError(
            f"{name}: the embedded world comes with a BM25 index only, named {parts.HOPLAND}"
        )
    opened: Retriever = components.named(retrievers, spec)()
    return opened


def tell_cut(retriever: "Retriever") -> None:
    """Warn if queries were longer than an encoder reads."""
    from hopscope.runtime.stages import TruncatingRetriever

    if isinstance(retriever, TruncatingRetriever) and (cut := retriever.queries_cut):
        _log.warning(
            f"{counted(cut, 'query is', 'queries are')} longer than the encoder reads; the end was "
            "left out"
        )


def _is_index(folder: str) -> bool:
    try:
        return (Path(folder) / "manifest.json").is_file()
    except OSError:  # a long expression is no name of a file at all
        return False
