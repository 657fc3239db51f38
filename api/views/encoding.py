"""Terminals that cannot show every character get similar plain ones of the same width.

Invariant: what is printed never raises for its characters, and columns stay where they are.
"""

import codecs
import sys
import unicodedata
from io import TextIOWrapper

PLAIN = "hopscope-plain"
"""The name of the error handler in `codecs`."""
SIMILAR = {
    ">": "→≥",
    "<": "←≤",
    "#": "█",
    "-": "━─╸╺╴╶–—‐‑−",  # noqa: RUF001
    "|": "│┃",
    ".": "…·",
    "*": "•✓",
    "x": "×",  # noqa: RUF001
    "~": "≈±",
    '"': "“”„«»",
    "'": "‘’‚",  # noqa: RUF001
    "d": "Δδ",
    "r": "ρ",  # noqa: RUF001
    "t": "τ",
    "s": "σß",
    "o": "ø",
    "O": "Ø",
    "l": "ł",
    "L": "Ł",
    "i": "ı",  # noqa: RUF001
}
STANDS_IN = {character: plain for plain, several in SIMILAR.items() for character in several}


def carries_everything() -> bool:
    """Whether stdout can show every character."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return codecs.lookup(encoding).name.startswith("utf")


def prepare() -> None:
    """Set stdout and stderr to replace characters that they cannot show by similar ones."""
    codecs.register_error(PLAIN, _stand_in)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=PLAIN)


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(map(_plain, text)), error.end


def _plain(character: str) -> str:
    if character in STANDS_IN:
        return STANDS_IN[character]
    if unicodedata.combining(character):
        return ""
    letter = unicodedata.normalize("NFKD", character)[0]
    if letter.isascii() and letter.isprintable():
        return letter
    return "??" if unicodedata.east_asian_width(character) in "WF" else "?"
