"""The pools of EoR: those expressions of `runtime.expression` that its nodes work through.

Invariant: `str` of a record is its canonical form, and parsing that gives the record again.
"""

from typing import NamedTuple

from hopscope.runtime import expression_parser
from hopscope.runtime.errors import UsageError
from hopscope.runtime.expression import (
    REFREE,
    Compress,
    Expression,
    Join,
    Keep,
    Nothing,
    Rerank,
    Source,
)


class Unit(NamedTuple):
    """Passages of one source."""

    name: str
    rerank: bool = False
    k: int | None = None
    """How many of the first are kept; None keeps all that the source gave."""

    @property
    def listed(self) -> str:
        """The ranking it takes its passages from; units that differ only in `k` share it."""
        return str(Source(self.name)) + ("@RR" if self.rerank else "")

    def __str__(self) -> str:
        return self.listed + (f"@{self.k}" if self.k is not None else "")


class Retriever(NamedTuple):
    """One way to come by a document for the reader."""

    units: tuple[Unit, ...] = ()
    """Concatenated in this order; none of them is ReFree, which reads nothing."""
    compress: bool = False

    def __str__(self) -> str:
        joined = "&".join(map(str, self.units))
        return (joined or REFREE) + ("@CP" if self.compress else "")


def parse_pool(text: str) -> tuple[Retriever, ...]:
    """The retrievers that expressions name, separated by commas.

    Raises:
        UsageError: an expression is broken or not of EoR's kind, or two name the same retriever.
    """
    return tuple(map(_retriever, expression_parser.parse_pool(text)))


def _retriever(expression: Expression) -> Retriever:
    match expression:
        case Nothing():
            return Retriever()
        case Compress(inner, None):
            return _retriever(inner)._replace(compress=True)
        case Join(parts):
            return Retriever(tuple(map(_unit, parts)))
        case _:
            return Retriever((_unit(expression),))


def _unit(expression: Expression) -> Unit:
    match expression:
        case Source(name):
            return Unit(name)
        case Rerank(Source(name), None):
            return Unit(name, rerank=True)
        case Keep(Source(name), k):
            return Unit(name, k=k)
        case Keep(Rerank(Source(name), None), k):
            return Unit(name, rerank=True, k=k)
    raise UsageError(
        f"{expression} in EoR's pool: its retrievers are sources with @RR and then @k, joined by & "
        "and at the end compressed by @CP; @RR and @CP are always by the reader"
    )
