"""Text that can be stored, hashed and printed, whatever a server, a file or an argument holds.

Python's strings can hold half of a surrogate pair: JSON spells one as `"\\ud83d"`, and each byte of
an argument that is not UTF-8 becomes one. UTF-8 has no form for it, so that hashing, storing or
printing such a text fails long after its arrival. U+FFFD replaces each half and marks the loss; two
halves side by side become their character.

The records of `runtime.types` do this for all text from outside (`Text`, `Texts`).

Text shown to a person (`line`, `brief`, `lines`) also loses control characters, which a terminal
would obey, and marks that change the direction of the text.
"""

from typing import Any

WORD = 300
"""The longest word of a message in characters; a name of a file has 255 at most."""
MARK = "\ufffd"
"""Replaces half of a surrogate pair."""


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
    """A JSON value with storable texts only."""
    match value:
        case str():
            return storable(value)
        case list():
            return [storable_json(each) for each in value]
        case dict():
            return {storable(key): storable_json(each) for key, each in value.items()}
    return value


def line(text: str) -> str:
    """The text made safe to show on one line: each stretch of white space is one space."""
    return "".join(filter(str.isprintable, " ".join(text.split())))


def brief(text: str, longest: int) -> str:
    """The line, cut with a mark where it is longer."""
    shown = line(text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def bounded(text: str, longest: int = WORD) -> str:
    """The text with its own lines and spaces, each longer word cut with a mark, such as a number of
    thousands of digits."""
    if len(text) <= longest:
        return text
    words = ([brief(word, longest) for word in each.split(" ")] for each in text.split("\n"))
    return "\n".join(map(" ".join, words))


def lines(text: str) -> str:
    """The text made safe to show, with its own lines and spaces."""
    if text.isprintable():
        return text
    return "".join(
        character if character == "\n" or character.isprintable() else " " * character.isspace()
        for character in text
    )
