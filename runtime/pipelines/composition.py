"""Builds the retriever that an expression names.

Sources are opened and components loaded once, before any search; the caller resolves the names,
because indexes, readers and meters live in other places.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any

from hopscope.runtime import components, compressors, fusions, rerankers
from hopscope.runtime.errors import UsageError
from hopscope.runtime.pipelines.composed import Composed, Stage, Staged
from hopscope.runtime.pipelines.expression import (
    Compress,
    Expression,
    Fuse,
    Join,
    Keep,
    NoRetrieval,
    Rerank,
    Source,
)
from hopscope.runtime.pipelines.expression import sources as names
from hopscope.runtime.ports import Prompts, Reader, Retriever, UtilityMeter
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.specs import Spec
from hopscope.runtime.stages import Fusion, Reranker

LISTWISE, SUMMARY = Spec("listwise"), Spec("summary")
ASKS = frozenset({"reader", "meter"})
"""Options of components that call a reader."""
NOTHING: Mapping[str, Any] = {"reader": None, "meter": None, "seed": 0, "prompts": DEFAULT_PROMPTS}
"""What is provided to components that are only looked at, or ask no reader."""


@dataclass(frozen=True)
class Parts:
    """Resolves the names in an expression."""

    source: Callable[[str], Retriever]
    """Opens an index or a service by its name."""
    reader: Reader
    """The run's reader, the default of all stages."""
    other_reader: Callable[[str], Reader]
    """Loads the reader that a stage names with `reader=`."""
    meter: Callable[[Reader, Prompts], UtilityMeter] | None = None
    """The meter of the reranker `utility`, which asks in these prompts."""
    seed: int = 0


def compose(expression: Expression, parts: Parts) -> Retriever:
    """The retriever that an expression names; a source alone is that source itself.

    Raises:
        UsageError: a source or a component is missing, or has other options.
    """
    check(expression)
    sources = {name: parts.source(name) for name in names(expression)}
    stages = {wanted: _stage(wanted, parts) for wanted in _staged(expression)}
    if isinstance(expression, Source):
        return sources[expression.name]
    told = [*(source.name for source in sources.values()), *(s.name for s in stages.values())]
    return Composed(
        name=f"{expression} [{'; '.join(dict.fromkeys(told))}]" if told else str(expression),
        expression=expression,
        sources=sources,
        stages=stages,
    )


def fusion(wanted: Fuse) -> Fusion:
    """The fusion that an expression names.

    Raises:
        UsageError: it is missing, or has other options.
    """
    made: Fusion = _named(wanted, {})()
    return made


def reranker(wanted: Rerank) -> Reranker:
    """The reranker that an expression names, with its own model loaded.

    Raises:
        UsageError: it is missing, has other options, or needs a reader.
    """
    build = _named(wanted, NOTHING)
    if ASKS & build.keywords.keys():
        raise UsageError(
            f"{wanted.operator}: asks a reader. Take @RR, by the run's reader, or a model of its "
            "own, as @RR(encoder:MODEL) or @RR(cross_encoder:MODEL)"
        )
    made: Reranker = build()
    return made


def check(expression: Expression) -> None:
    """Check an expression before anything is loaded.

    Raises:
        UsageError: a component is missing, or has other options.
    """
    for wanted in _staged(expression):
        _named(wanted, NOTHING)


def _staged(expression: Expression) -> tuple[Staged, ...]:
    """All operations of components in an expression."""
    match expression:
        case NoRetrieval() | Source():
            return ()
        case Keep(inner):
            return _staged(inner)
        case Join(parts):
            return tuple(stage for part in parts for stage in _staged(part))
        case Fuse(_, fused):
            return (expression, *(stage for part in fused for stage in _staged(part.inner)))
        case Rerank(inner) | Compress(inner):
            return (expression, *_staged(inner))


def _named(wanted: Staged, provided: Mapping[str, Any]) -> partial[Any]:
    """`build` of the component with its options."""
    package: ModuleType
    match wanted:
        case Fuse(by):
            package, choice, where = fusions, by, f"{by.name}(...)"
        case Rerank(_, by):
            package, choice, where = rerankers, by or LISTWISE, wanted.operator
        case Compress(_, by):
            package, choice, where = compressors, by or SUMMARY, wanted.operator
    own = dict(choice.options).get("reader")
    spec = replace(choice, options=tuple(o for o in choice.options if o[0] != "reader"))
    try:
        build = components.named(package, spec, provided=provided)
        if own is not None and not ASKS & build.keywords.keys():
            raise UsageError(f"{choice.name} asks no reader, but reader={own} is given")
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    return build


def _stage(wanted: Staged, parts: Parts) -> Stage:
    own = dict(wanted.by.options).get("reader") if wanted.by else None
    reader = parts.reader if own is None else parts.other_reader(own)

    def build(reader: Reader, prompts: Prompts = DEFAULT_PROMPTS) -> partial[Any]:
        meter = parts.meter(reader, prompts) if parts.meter else None
        provided = {"reader": reader, "meter": meter, "seed": parts.seed, "prompts": prompts}
        return _named(wanted, provided)

    made = build(reader)()
    asks = ASKS & build(reader).keywords.keys()
    name = made.name if own is None else f"{made.name} by {reader.name}"
    if not asks:
        return Stage(lambda reader, prompts: made, reader, name)
    return Stage(lambda reader, prompts: build(reader, prompts)(), reader, name)
