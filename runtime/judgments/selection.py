"""Parses a model's selection of passages: numbers in a list, or yes and no.

Invariant: any text gives a result; numbers count from 1, and numbers outside 1..n are ignored
rather than wrapped around ("[0]" is not the last passage).
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

_MARKER = re.compile("selection", re.IGNORECASE)
_JUDGMENT = re.compile("judge?ment", re.IGNORECASE)
_INFORMATION = re.compile(r"necessary information\W*?:", re.IGNORECASE)
_BRACKETED = re.compile(r"\[\s*(\d+)\s*\]")
_INTEGER = re.compile(r"\d+")
_EMPTY = re.compile(r"\[\s*\]")  # in "[[]]", too: an explicitly empty selection
_VERDICT = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
_DIGITS = 9  # more make no position, and Python refuses to read some thousands of them


class Selection(NamedTuple):
    """The selection in a reply."""

    positions: tuple[int, ...]
    """From 1, in the order of the reply, each once."""
    ok: bool
    """Whether the reply had the required form."""


def numbers(text: str, n: int) -> tuple[int, ...]:
    """The positions 1..n that a text names, each once: its bracketed numbers, else any."""
    found = _BRACKETED.findall(text) or _INTEGER.findall(text)
    return within((int(digits) for digits in found if len(digits) <= _DIGITS), n)


def within(positions: Iterable[int], n: int) -> tuple[int, ...]:
    """The positions within 1..n, each once, in order."""
    return tuple(dict.fromkeys(p for p in positions if 1 <= p <= n))


def selection(reply: str, n: int, *, after_text: bool = False) -> Selection:
    """The list after the last "selection" that a list follows, since a model may comment on its
    selection afterwards. Without the marker, the list in the whole reply.

    `after_text`: an answer precedes the list, and its numbers are no selection; without the marker
    such a reply has none.
    """
    before, *pieces = _MARKER.split(reply)
    for piece in reversed(pieces):
        positions = numbers(piece, n)
        if positions or _EMPTY.search(piece):
            return Selection(positions, ok=True)
    return Selection(() if pieces or after_text else numbers(before, n), ok=False)


def verdict(reply: str) -> bool | None:
    """Whether yes follows the last "judgment" that yes or no follows; None if there is none.
    Without the marker, whether the reply begins with yes."""
    before, *pieces = _JUDGMENT.split(reply)
    for piece in reversed(pieces or [before]):
        if match := _VERDICT.match(piece):
            return match.group(1).lower() == "yes"
    return None


def necessary_information(reply: str) -> str | None:
    """The text after the marker of an implicit answer, without brackets; None without a marker."""
    match = _INFORMATION.search(reply)
    return reply[match.end() :].strip().strip("[]").strip() if match else None
