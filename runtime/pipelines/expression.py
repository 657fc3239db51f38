"""Expressions that name retrievers, such as `bm25:wiki@RR@5&dense:wiki@3@CP`.

    pool      = retriever {"," retriever}
    retriever = "ReFree" | joined ["@CP" [choice]]
    joined    = unit {"&" unit}
    unit      = source {"@RR" [choice] | "@" INT}
    source    = NAME | "(" retriever ")" | FUSION "(" part {"," part} {"," option} ")"
    part      = [NUMBER "*"] retriever
    choice    = "(" NAME {"," option} ")"
    option    = KEY "=" VALUE

@RR (rerank) and @k (keep the first k) bind before & (concatenate), and & binds before @CP
(compress); a choice names the component. Names, keys and values are runs of characters without
spaces and without @ & , ( ) * = unless they are in double quotes; within these a double quote is
written twice. Invariant: `str` of a record is its canonical form, and parsing that form gives an
equal record.

Source: EoR (Li, Li, Chen, Xuan, Zhang 2024, arXiv 2405.20680, section 2.1), whose expressions are
ReFree and those without fusions, choices and parentheses.
"""

import re
from dataclasses import dataclass

from hopscope.runtime.specs import Spec

REFREE = "ReFree"
SIGNS = "@&,()*="
_PLAIN = re.compile(rf'[^\s"{re.escape(SIGNS)}]+')


@dataclass(frozen=True, slots=True)
class NoRetrieval:
    """ReFree: no retrieval."""

    def __str__(self) -> str:
        return REFREE


@dataclass(frozen=True, slots=True)
class Source:
    """An index or a service."""

    name: str

    def __str__(self) -> str:
        reserved = self.name == REFREE or self.name.isdecimal()
        return f'"{self.name}"' if reserved else quoted(self.name)


@dataclass(frozen=True, slots=True)
class Keep:
    """The first `k`."""

    inner: "Expression"
    k: int

    def __str__(self) -> str:
        return f"{_unit(self.inner)}@{self.k}"


@dataclass(frozen=True, slots=True)
class Rerank:
    """The same passages in another order."""

    inner: "Expression"
    by: Spec | None = None
    """The reranker; None is listwise by the run's reader."""

    @property
    def operator(self) -> str:
        return "@RR" + (f"({_choice(self.by)})" if self.by else "")

    def __str__(self) -> str:
        return _unit(self.inner) + self.operator


@dataclass(frozen=True, slots=True)
class Join:
    """Several rankings one after the other."""

    parts: tuple["Expression", ...]

    def __str__(self) -> str:
        return "&".join(map(_unit, self.parts))


@dataclass(frozen=True, slots=True)
class Part:
    """One ranking of a fusion, with its weight."""

    inner: "Expression"
    weight: float = 1.0

    def __str__(self) -> str:
        short = f"{self.weight:g}"
        weight = short if float(short) == self.weight else repr(self.weight)
        return (f"{weight}*" if self.weight != 1 else "") + str(self.inner)


@dataclass(frozen=True, slots=True)
class Fuse:
    """Several rankings fused into one."""

    by: Spec
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        within = [*map(str, self.parts), *map(_option, self.by.options)]
        return f"{Source(_leaf(self.by))}({','.join(within)})"


@dataclass(frozen=True, slots=True)
class Compress:
    """The same passages in fewer tokens."""

    inner: "Expression"
    by: Spec | None = None
    """The compressor; None is a summary by the run's reader."""

    @property
    def operator(self) -> str:
        return "@CP" + (f"({_choice(self.by)})" if self.by else "")

    def __str__(self) -> str:
        joined = str(self.inner) if isinstance(self.inner, Join) else _unit(self.inner)
        return joined + self.operator


Expression = NoRetrieval | Source | Keep | Rerank | Join | Fuse | Compress


def size(expression: Expression) -> int | None:
    """Most passages of an expression by its own numbers; None if the caller decides.

    Numbers within a reranking or a fusion only limit its candidates.
    """
    match expression:
        case NoRetrieval():
            return 0
        case Keep(inner, k):
            within = size(inner)
            return k if within is None else min(k, within)
        case Join(parts):
            sizes = [size(part) for part in parts]
            known = [each for each in sizes if each is not None]
            return sum(known) if len(known) == len(sizes) else None
        case Compress(inner):
            return size(inner)
    return None


def sources(expression: Expression) -> tuple[str, ...]:
    """The names of an expression's sources, each once, in order of first appearance."""
    match expression:
        case NoRetrieval():
            found: tuple[str, ...] = ()
        case Source(name):
            found = (name,)
        case Keep(inner) | Rerank(inner) | Compress(inner):
            found = sources(inner)
        case Join(parts):
            found = tuple(name for part in parts for name in sources(part))
        case Fuse(_, fused):
            found = tuple(name for part in fused for name in sources(part.inner))
    return tuple(dict.fromkeys(found))


def quoted(text: str) -> str:
    """A name in quotes, if it needs them."""
    return text if _PLAIN.fullmatch(text) else '"' + text.replace('"', '""') + '"'


def _choice(spec: Spec) -> str:
    return ",".join([quoted(_leaf(spec)), *map(_option, spec.options)])


def _leaf(spec: Spec) -> str:
    """The spec without its options, which this grammar writes in its own way."""
    return f"{spec.name}:{spec.argument}" if spec.argument else spec.name


def _option(option: tuple[str, str]) -> str:
    return "=".join(map(quoted, option))


def _unit(expression: Expression) -> str:
    loose = isinstance(expression, NoRetrieval | Join | Compress)
    return f"({expression})" if loose else str(expression)
