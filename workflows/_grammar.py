"""The expressions that name EoR's retrievers, such as `SE@RR@5&Wiki@5@CP`.

    retriever = "ReFree" | cat ["@CP"]
    cat       = unit {"&" unit}
    unit      = NAME ["@RR"] ["@" INT]

So @RR (rerank) binds before @k (keep the first k), that before & (concatenate), and that before
@CP (compress). A NAME is `name` or `name:index`. Invariant: `str` of a record is its canonical
form, and parsing that gives the record again.

Source: Li, Li, Chen, Xuan, Zhang 2024 (arXiv 2405.20680), section 2.1.
"""

import re
from typing import NamedTuple, NoReturn

from hopscope.runtime.errors import UsageError

REFREE = "ReFree"
_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z][\w.-]*(?::[\w.-]+)?)|(?P<int>[0-9]+)|(?P<sign>[@&,])|(?P<end>\Z))",
    re.ASCII,
)
_DIGITS = 9  # Python refuses to read some thousands of them


class Unit(NamedTuple):
    """Passages of one source."""

    name: str
    rerank: bool = False
    k: int | None = None
    """How many of the first are kept; None keeps all that the source gave."""

    @property
    def listed(self) -> str:
        """The ranking it takes its passages from; units that differ only in `k` share it."""
        return self.name + ("@RR" if self.rerank else "")

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


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


def parse(text: str) -> Retriever:
    """The retriever that an expression names.

    Raises:
        UsageError: it is none; the message tells where and what was expected.
    """
    parser = _Parser(text)
    retriever = parser.retriever()
    parser.end("& or the end")
    return retriever


def parse_pool(text: str) -> tuple[Retriever, ...]:
    """The retrievers that expressions name, separated by commas.

    Raises:
        UsageError: an expression is broken, or two name the same retriever.
    """
    parser = _Parser(text)
    pool = [parser.retriever()]
    while parser.takes(","):
        pool.append(parser.retriever())
    parser.end("&, a comma or the end")
    for position, retriever in enumerate(pool):
        if retriever in pool[:position]:
            raise UsageError(f"the pool {text!r} holds {retriever} twice: name each retriever once")
    return tuple(pool)


class _Parser:
    """Recursive descent: one method for each rule."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[_Token] = []
        self._at = 0
        position = 0
        while not self._tokens or self._tokens[-1].kind != "end":
            found = _TOKEN.match(text, position)
            if not found:
                start = position + len(text[position:]) - len(text[position:].lstrip())
                self._fail("a name, @, & or a comma", _Token("other", text[start], start))
            kind = found.lastgroup or ""
            self._tokens.append(_Token(kind, found.group(kind), found.start(kind)))
            position = found.end()

    def retriever(self) -> Retriever:
        if self._next.text == REFREE:
            self._at += 1
            if self._next.text in ("@", "&"):
                self._fail(f"nothing after {REFREE}, which reads no document")
            return Retriever()
        units = [self._unit()]
        while self.takes("&"):
            units.append(self._unit())
        compress = self.takes("@")
        if compress and not self.takes("CP"):
            self._fail(self._after_at(units[-1]))
        if compress and self._next.text in ("@", "&"):
            self._fail("nothing after @CP, which compresses all that stands before it")
        return Retriever(tuple(units), compress)

    def _unit(self) -> Unit:
        name = self._next
        if name.kind != "name" or name.text == REFREE:
            self._fail(f"the name of a source, which {REFREE} is not")
        self._at += 1
        rerank = self._operator("name", "RR") is not None
        k = self._operator("int")
        if k is not None and not (len(k.text) <= _DIGITS and int(k.text) >= 1):
            self._fail("a number of passages from 1 to 999999999", k)
        return Unit(name.text, rerank, int(k.text) if k else None)

    def _operator(self, kind: str, text: str | None = None) -> _Token | None:
        """What follows an @, if it is of this kind; else nothing is taken, the @ neither."""
        if self._next.text != "@":
            return None
        token = self._tokens[self._at + 1]
        if token.kind != kind or text not in (None, token.text):
            return None
        self._at += 2
        return token

    @staticmethod
    def _after_at(unit: Unit) -> str:
        """What may follow an @ behind this unit: operators bind in one order."""
        if unit.k is not None:
            return "CP (the order is @RR, @k, &, @CP)"
        return "a number or CP" if unit.rerank else "RR, a number or CP"

    def takes(self, text: str) -> bool:
        taken = self._next.text == text
        self._at += taken
        return taken

    def end(self, expected: str) -> None:
        if self._next.kind != "end":
            self._fail(f"@, {expected}")

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _fail(self, expected: str, token: _Token | None = None) -> NoReturn:
        token = token or self._next
        found = repr(token.text) if token.text else "the end"
        raise UsageError(
            f"{self._text!r}, character {token.start + 1}: expected {expected}, found {found}"
        )
