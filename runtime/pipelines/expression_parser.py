"""Parses expressions that name retrievers; the grammar is in `runtime.pipelines.expression`."""

import re
from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from typing import NamedTuple, NoReturn, TypeVar

from hopscope.runtime.errors import UsageError
from hopscope.runtime.pipelines.expression import (
    REFREE,
    SIGNS,
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

_QUOTED = '"(?:[^"]|"")*"'
_WORD = rf'(?:[^\s"{re.escape(SIGNS)}]|{_QUOTED})+'
_TOKEN = re.compile(rf"\s*(?:(?P<word>{_WORD})|(?P<sign>[{re.escape(SIGNS)}])|(?P<end>\Z))")
_DIGITS = 9  # Python refuses to read some thousands of them
_DEEPEST = 50  # nested parentheses; deeper ones are no retriever that anybody wants


Read = TypeVar("Read")


class _Token(NamedTuple):
    kind: str
    text: str
    """As written."""
    start: int

    @property
    def name(self) -> str:
        """Without the quotes."""
        return re.sub(_QUOTED, lambda found: found[0][1:-1].replace('""', '"'), self.text)

    @property
    def is_number(self) -> bool:
        return self.kind == "word" and self.text.isascii() and self.text.isdecimal()


def parse(text: str) -> Expression:
    """The retriever that an expression names.

    Raises:
        UsageError: the text is no expression; the message tells the place and the expected sign.
    """
    parser = _Parser(text)
    found = parser.retriever()
    parser.end("@, & or the end")
    return found


def parse_pool(text: str) -> tuple[Expression, ...]:
    """The retrievers of several expressions, separated by commas.

    Raises:
        UsageError: an expression is broken, or two name the same retriever.
    """
    parser = _Parser(text)
    pool = [parser.retriever()]
    while parser.takes(","):
        pool.append(parser.retriever())
    parser.end("@, &, a comma or the end")
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
        self._depth = 0
        position = 0
        while not self._tokens or self._tokens[-1].kind != "end":
            found = _TOKEN.match(text, position)
            if not found:
                start = text.index('"', position)
                self._fail("a closing quote behind this one", _Token("other", '"', start))
            kind = found.lastgroup or ""
            self._tokens.append(_Token(kind, found.group(kind), found.start(kind)))
            position = found.end()

    def retriever(self) -> Expression:
        if self._next.text == REFREE and not self._depth:
            self._at += 1
            if self._next.text in ("@", "&"):
                self._fail(f"nothing after {REFREE}, which reads no document")
            return NoRetrieval()
        parts = [self._unit()]
        while self.takes("&"):
            parts.append(self._unit())
        joined = Join(tuple(parts)) if len(parts) > 1 else parts[0]
        if not self.takes("@"):
            return joined
        self._at += 1  # CP: a unit takes all else that an @ may stand before
        compressed = Compress(joined, self._choice())
        if self._next.text in ("@", "&"):
            self._fail("nothing after @CP, which compresses everything before it")
        return compressed

    def _unit(self) -> Expression:
        found = self._source()
        while self._next.text == "@":
            operator = self._after
            if operator.text == "CP":
                break
            self._at += 2
            if operator.text == "RR":
                found = Rerank(found, self._choice())
            elif operator.is_number:
                found = Keep(found, self._count(operator))
            else:
                self._fail("RR, a number or CP", operator)
        return found

    def _source(self) -> Expression:
        if self._next.text == "(":
            return self._within(self.retriever)
        name = self._name("the name of a source")
        if name.is_number:
            self._fail("the name of a source (between double quotes if it is a number)", name)
        if name.text == REFREE:
            self._fail(f"the name of a source, which {REFREE} is not", name)
        if self._next.text == "(":
            return self._within(lambda: self._fusion(name))
        return Source(name.name)

    def _fusion(self, name: _Token) -> Fuse:
        parts = [self._part()]
        if self._next.text != ",":
            self._fail("@, &, or a comma and another retriever to fuse with")
        options: tuple[tuple[str, str], ...] = ()
        while not options and self.takes(","):
            if self._after.text != "=":
                parts.append(self._part())
            elif len(parts) > 1:
                options = self._options()
            else:
                self._fail("another retriever to fuse with")
        return Fuse(self._leaf(name, options), tuple(parts))

    def _part(self) -> Part:
        number = self._next
        if self._after.text != "*":
            return Part(self.retriever())
        self._at += 2
        try:
            weight = float(number.text)
        except ValueError:
            weight = 0
        if not (weight > 0 and isfinite(weight)):
            self._fail("a weight above 0", number)
        return Part(self.retriever(), weight)

    def _choice(self) -> Spec | None:
        def choose() -> Spec:
            name = self._name("the name of a component")
            return self._leaf(name, self._options() if self.takes(",") else ())

        return self._within(choose) if self._next.text == "(" else None

    def _leaf(self, name: _Token, options: tuple[tuple[str, str], ...]) -> Spec:
        """`NAME` or `NAME:ARGUMENT`, with the options that stand beside it."""
        try:
            return replace(Spec.parse(name.name, options=False), options=options)
        except UsageError as error:
            raise UsageError(f"{self._text!r}: {error}") from None

    def _options(self) -> tuple[tuple[str, str], ...]:
        """The options after a comma."""
        found: dict[str, str] = {}
        while True:
            key = self._name("an option, as in key=value")
            if key.name in found:
                self._fail(f"each option once, {key.name} again", key)
            if not self.takes("="):
                self._fail("= and a value")
            found[key.name] = self._name("a value").name
            if not self.takes(","):
                return tuple(found.items())

    def _within(self, rule: Callable[[], Read]) -> Read:
        """Parse a rule within parentheses."""
        opening = self._next
        self._at += 1
        self._depth += 1
        if self._depth > _DEEPEST:
            self._fail(f"at most {_DEEPEST} parentheses within each other", opening)
        found = rule()
        if not self.takes(")"):
            self._fail(") for the ( of character " + str(opening.start + 1))
        self._depth -= 1
        return found

    def _name(self, expected: str) -> _Token:
        token = self._next
        if token.kind != "word":
            self._fail(expected)
        self._at += 1
        return token

    def _count(self, token: _Token) -> int:
        if not (len(token.text) <= _DIGITS and int(token.text) >= 1):
            self._fail("a number of passages from 1 to 999999999", token)
        return int(token.text)

    def takes(self, text: str) -> bool:
        taken = self._next.text == text
        self._at += taken
        return taken

    def end(self, expected: str) -> None:
        if self._next.kind != "end":
            self._fail(expected)

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    @property
    def _after(self) -> _Token:
        """The token behind the next one, of which there is none behind the end."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def _fail(self, expected: str, token: _Token | None = None) -> NoReturn:
        token = token or self._next
        found = repr(token.text) if token.text else "the end"
        raise UsageError(
            f"{self._text!r}, character {token.start + 1}: expected {expected}, found {found}"
        )
