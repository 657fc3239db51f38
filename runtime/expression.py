"""Expressions that name retrievers, such as `bm25:wiki@RR@5&dense:wiki@3@CP`.

    pool      = retriever {"," retriever}
    retriever = "ReFree" | joined ["@CP" [choice]]
    joined    = unit {"&" unit}
    unit      = source {"@RR" [choice] | "@" INT}
    source    = NAME | "(" retriever ")" | FUSION "(" part {"," part} {"," option} ")"
    part      = [NUMBER "*"] retriever
    choice    = "(" NAME {"," option} ")"
    option    = KEY "=" VALUE

So @RR (rerank) and @k (keep the first k) bind before & (concatenate), and that before @CP
(compress); what stands in the choice says by what. Names, keys and values are runs of characters
without spaces and without @ & , ( ) * = unless they stand between double quotes, where a double
quote is written twice. Invariant: `str` of a record is its canonical form, and parsing that gives
the record again.

Source: EoR (Li, Li, Chen, Xuan, Zhang 2024, arXiv 2405.20680, section 2.1), whose expressions are
ReFree and those without fusions, choices and parentheses.
"""

import re
from dataclasses import dataclass

REFREE = "ReFree"
SIGNS = "@&,()*="
_PLAIN = re.compile(rf'[^\s"{re.escape(SIGNS)}]+')


@dataclass(frozen=True, slots=True)
class Choice:
    """A component by name, `NAME` or `NAME:ARGUMENT`, and its options."""

    name: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return ",".join([quoted(self.name), *map(_option, self.options)])


@dataclass(frozen=True, slots=True)
class Nothing:
    """ReFree, which reads nothing."""

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
    """The same in another order."""

    inner: "Expression"
    by: Choice | None = None
    """None is by the run's reader, listwise."""

    @property
    def operator(self) -> str:
        return "@RR" + (f"({self.by})" if self.by else "")

    def __str__(self) -> str:
        return _unit(self.inner) + self.operator


@dataclass(frozen=True, slots=True)
class Join:
    """One after the other."""

    parts: tuple["Expression", ...]

    def __str__(self) -> str:
        return "&".join(map(_unit, self.parts))


@dataclass(frozen=True, slots=True)
class Part:
    """One of the rankings that are made one, and how much it counts."""

    inner: "Expression"
    weight: float = 1.0

    def __str__(self) -> str:
        short = f"{self.weight:g}"
        weight = short if float(short) == self.weight else repr(self.weight)
        return (f"{weight}*" if self.weight != 1 else "") + str(self.inner)


@dataclass(frozen=True, slots=True)
class Fuse:
    """Several rankings as one."""

    by: Choice
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        within = [*map(str, self.parts), *map(_option, self.by.options)]
        return f"{Source(self.by.name)}({','.join(within)})"


@dataclass(frozen=True, slots=True)
class Compress:
    """The same in fewer tokens."""

    inner: "Expression"
    by: Choice | None = None
    """None is a summary by the run's reader."""

    @property
    def operator(self) -> str:
        return "@CP" + (f"({self.by})" if self.by else "")

    def __str__(self) -> str:
        joined = str(self.inner) if isinstance(self.inner, Join) else _unit(self.inner)
        return joined + self.operator


Expression = Nothing | Source | Keep | Rerank | Join | Fuse | Compress


def size(expression: Expression) -> int | None:
    """How many passages it gives at most by its own numbers; None where that is left to who asks.

    The numbers of what is reranked or fused only say how many candidates there are.
    """
    match expression:
        case Nothing():
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
    """The names of its sources, each once, in order of first appearance."""
    match expression:
        case Nothing():
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
    """A name as it is written."""
    return text if _PLAIN.fullmatch(text) else '"' + text.replace('"', '""') + '"'


def _option(option: tuple[str, str]) -> str:
    return "=".join(map(quoted, option))


def _unit(expression: Expression) -> str:
    loose = isinstance(expression, Nothing | Join | Compress)
    return f"({expression})" if loose else str(expression)
