"""The pools of EoR: expressions of `runtime.pipelines.expression` that its nodes execute.

Invariant: `str` of a record is its canonical form, and parsing that gives the record again.
"""

from typing import NamedTuple, NoReturn

from hopscope.runtime.errors import UsageError
from hopscope.runtime.pipelines import expression, expression_parser
from hopscope.runtime.pipelines.expression import (
    REFREE,
    Compress,
    Expression,
    Fuse,
    Join,
    Keep,
    NoRetrieval,
    Part,
    Rerank,
    Source,
)
from hopscope.runtime.specs import Spec


class PoolUnit(NamedTuple):
    """Passages of one source, or of several whose rankings are fused."""

    of: Source | Fuse
    """The parts of a fusion are sources, each optionally cut to its first passages."""
    rerank: bool = False
    k: int | None = None
    """The number of first passages to keep; None keeps all."""
    by: Spec | None = None
    """The reranker; None is the run's reader, listwise."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of its sources."""
        return expression.sources(self.of)

    @property
    def deepest(self) -> int:
        """The most passages that it keeps of one ranking; 0 if it sets no number."""
        parts = self.of.parts if isinstance(self.of, Fuse) else ()
        return max([self.k or 0, *(expression.size(part.inner) or 0 for part in parts)])

    @property
    def listed(self) -> str:
        """The ranking it takes its passages from; units that differ only in `k` share it."""
        return str(Rerank(self.of, self.by) if self.rerank else self.of)

    def __str__(self) -> str:
        return self.listed + (f"@{self.k}" if self.k is not None else "")


class PoolRetriever(NamedTuple):
    """One way to make a document for the reader."""

    units: tuple[PoolUnit, ...] = ()
    """Concatenated in this order; without units it is ReFree, which reads no document."""
    compress: bool = False

    def __str__(self) -> str:
        joined = "&".join(map(str, self.units))
        return (joined or REFREE) + ("@CP" if self.compress else "")


def parse_pool(text: str) -> tuple[PoolRetriever, ...]:
    """The retrievers of a pool: expressions separated by commas.

    Raises:
        UsageError: an expression cannot be parsed or does not fit EoR, or two are the same.
    """
    return tuple(map(_retriever, expression_parser.parse_pool(text)))


def _retriever(expression: Expression) -> PoolRetriever:
    match expression:
        case NoRetrieval():
            return PoolRetriever()
        case Compress(inner, None):
            return _retriever(inner)._replace(compress=True)
        case Join(parts):
            return PoolRetriever(tuple(map(_unit, parts)))
        case _:
            return PoolRetriever((_unit(expression),))


def _unit(expression: Expression) -> PoolUnit:
    match expression:
        case Source() | Fuse():
            found = PoolUnit(expression)
        case Rerank(Source() | Fuse() as of, by):
            found = PoolUnit(of, rerank=True, by=by)
        case Keep(Source() | Fuse() as of, k):
            found = PoolUnit(of, k=k)
        case Keep(Rerank(Source() | Fuse() as of, by), k):
            found = PoolUnit(of, rerank=True, k=k, by=by)
        case _:
            _refuse(expression)
    if isinstance(found.of, Fuse) and not all(map(_fusible, found.of.parts)):
        _refuse(found.of)
    return found


def _fusible(part: Part) -> bool:
    return isinstance(part.inner.inner if isinstance(part.inner, Keep) else part.inner, Source)


def _refuse(expression: Expression) -> NoReturn:
    raise UsageError(
        f"{expression} cannot stand in EoR's pool: write each retriever as a source or a fusion of "
        "sources, then @RR or @RR(encoder:MODEL), then @k; join several with &; end with @CP for "
        "a summary by the reader"
    )
