"""The texts that name components, `NAME[:ARGUMENT][,KEY=VALUE]...`.

One is `hf:FOLDER,dtype=bfloat16`. `api.parts` builds the reader, entailment or workflow of a spec,
`api.retrieval` the retriever.
A name ends at the first colon, and an argument or value at the first comma that an option follows,
so that both may hold colons, commas and equals signs: paths and URLs need no quotes. A comma before
`KEY=` that begins no option is written twice: `hf:FOLDER,,OLD=1` has no option.

Invariant: `str` of a spec is its canonical text, and `parse` of that gives the spec again.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, Self

from hopscope.runtime.errors import UsageError

_KEY = "[a-z_][a-z0-9_]*"
# Each looks at a stretch of commas once, from its first.
_COMMAS = re.compile(rf"(?<!,),++(?={_KEY}=)")
_LAST_COMMAS = re.compile(r"(?<!,),++\Z")


@dataclass(frozen=True, slots=True)
class Spec:
    """A component by name, with its settings as texts."""

    name: str
    argument: str = ""
    """The setting behind the colon; empty for none."""
    options: tuple[tuple[str, str], ...] = ()
    """Keys and values in the order in which they are written, each key once."""

    @classmethod
    def parse(cls, text: str, *, argument: bool = True, options: bool = True) -> Self:
        """The spec that a text stands for.

        Args:
            argument: False for components that take none: then options may follow the colon, as in
                `ircot:k=4,max_steps=3`.
            options: False where options are written elsewhere: then all behind the colon is the
                argument.

        Raises:
            UsageError: the text is not of this form; the message names the character.
        """
        name = re.split("[:,]" if options else ":", text, maxsplit=1)[0]
        if not name.strip():
            _fail(text, 0, "a name")
        start = len(name) + 1
        opening, rest = text[len(name) : start], text[start:]
        if not options:
            return cls(name, rest)
        if opening == "," or (opening and not argument):
            pieces = _pieces("," + rest, start - 1)[1:]
            if not pieces or pieces[0][0] != start:
                _fail(text, start, "an option, as in KEY=VALUE")
            return cls(name, options=_options(text, pieces))
        (_, given), *pieces = _pieces(rest, start)
        return cls(name, given, _options(text, pieces))

    @classmethod
    def of(cls, named: "Self | str") -> Self:
        """The spec that is given, as such or as a text.

        Raises:
            UsageError: as `parse`.
        """
        return cls.parse(named) if isinstance(named, str) else named

    @property
    def inner(self) -> Self:
        """The argument as a spec, which the options belong to: the reader of `judge:READER`.

        Raises:
            UsageError: as `parse`, or an option is given twice.
        """
        inside = self.parse(self.argument)
        both = replace(inside, options=inside.options + self.options)
        known = {key for key, _ in inside.options}
        for key, _ in self.options:
            if key in known:
                raise UsageError(f"{self}: option {key} is given twice; give it once")
        return both

    def __str__(self) -> str:
        head = f"{self.name}:{self.argument}" if self.argument else self.name
        pieces = [head, *("=".join(option) for option in self.options)]
        *before, last = (_COMMAS.sub(_twice, piece) for piece in pieces)
        return ",".join([*(_LAST_COMMAS.sub(_twice, piece) for piece in before), last])


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """Options that are given one by one, each as `KEY=VALUE`; a value may hold anything.

    Raises:
        UsageError: a text without a key, or a key given twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"option {text!r} is not of the form key=value, as in k=4")
        if key in found:
            raise UsageError(f"option {key!r} is given twice; give it once")
        found[key] = value
    return found


def listed(text: str, what: str) -> dict[str, str]:
    """What `NAME=VALUE,NAME=VALUE` lists; a value may be missing, then it is empty.

    Args:
        what: what the names are of, for the error.

    Raises:
        UsageError: a name is missing or given twice; the message names the character.
    """
    found: dict[str, str] = {}
    place = 0
    for piece in text.split(","):
        name, _, value = map(str.strip, piece.partition("="))
        if name in found:
            _fail(text, place, f"each {what} once, not {name} again")
        if name:
            found[name] = value
        elif piece.strip():
            _fail(text, place, f"the name of a {what}")
        place += len(piece) + 1
    return found


def _pieces(text: str, start: int) -> list[tuple[int, str]]:
    """The argument and the options between the commas that separate them, with their places."""
    pieces, at, begun, known = [], 0, 0, ""
    for commas in _COMMAS.finditer(text):
        known += text[at : commas.start()] + "," * (len(commas[0]) // 2)
        at = commas.end()
        if len(commas[0]) % 2:
            pieces.append((start + begun, known))
            begun, known = at, ""
    return [*pieces, (start + begun, known + text[at:])]


def _options(text: str, pieces: Sequence[tuple[int, str]]) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for place, piece in pieces:
        key, _, value = piece.partition("=")
        if key in found:
            _fail(text, place, f"each option once, not {key} again")
        found[key] = value
    return tuple(found.items())


def _twice(found: re.Match[str]) -> str:
    return found[0] * 2


def _fail(text: str, place: int, expected: str) -> NoReturn:
    found = repr(text[place:]) if text[place:] else "the end"
    raise UsageError(f"{text!r}, character {place + 1}: expected {expected}, found {found}")
