"""Text that can be stored, hashed and printed, whatever a server, a file or an argument holds.

Python's strings can hold half of a surrogate pair: JSON spells one as `"\\ud83d"`, and bytes of an
argument that are not UTF-8 come as one each. UTF-8 has no form for it, so that hashing, storing or
printing such a text fails long after it came in. Each half is replaced by U+FFFD, which marks the
place where something was lost; two halves that stand together become their character.

The records of `runtime.types` do this for all text that comes from outside (`Text`, `Texts`).

What is shown to a person (`line`, `lines`) has no control characters either, which a terminal would
obey, and no marks that turn the direction of the text around.
"""

from typing import Any

MARK = "\ufffd"
"""Stands where half of a surrogate pair stood."""


def storable(text: str) -> str:
    """The text itself, or a copy with `MARK` for each half of a surrogate pair."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def storable_json(value: Any) -> Any:
    """A JSON value all of whose texts are storable."""
    match value:
        case str():
            return storable(value)
        case list():
            return [storable_json(each) for each in value]
        case dict():
            return {storable(key): storable_json(each) for key, each in value.items()}
    return value


def line(text: str) -> str:
    """The text on one line, as it may be shown: each stretch of white space is one space."""
    return "".join(filter(str.isprintable, " ".join(text.split())))


def lines(text: str) -> str:
    """The text as it may be shown, with its own lines and spaces."""
    if text.isprintable():
        return text
    return "".join(
        character if character == "\n" or character.isprintable() else " " * character.isspace()
        for character in text
    )
