"""Which passages a model picks in its reply: by numbers in a list, or by yes and no.

Invariant: any text gives a result; numbers count from 1, and what lies outside 1..n is ignored
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
_EMPTY = re.compile(r"\[\s*\]")  # in "[[]]", too: nothing is picked, and that is said
_VERDICT = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
_DIGITS = 9  # more make no position, and Python refuses to read some thousands of them


class Picked(NamedTuple):
    """What was read out of a reply."""

    positions: tuple[int, ...]
    """From 1, in the order of the reply, each once."""
    ok: bool
    """Whether the reply had the form asked for."""


def numbers(text: str, n: int) -> tuple[int, ...]:
    """The positions 1..n that a text names, each once: its bracketed numbers, else any."""
    found = _BRACKETED.findall(text) or _INTEGER.findall(text)
    return within((int(digits) for digits in found if len(digits) <= _DIGITS), n)


def within(positions: Iterable[int], n: int) -> tuple[int, ...]:
    """Those of 1..n, each once, in order."""
    return tuple(dict.fromkeys(p for p in positions if 1 <= p <= n))


def selection(reply: str, n: int, *, after_text: bool = False) -> Picked:
    """The list that follows the last "selection"; the last one with a list, as a model may say
    more about its selection. Without the marker the list in the whole reply.

    `after_text`: an answer precedes the list, whose numbers are not picks. So without the marker
    nothing is read from such a reply.
    """
    before, *pieces = _MARKER.split(reply)
    for piece in reversed(pieces):
        positions = numbers(piece, n)
        if positions or _EMPTY.search(piece):
            return Picked(positions, ok=True)
    return Picked(() if pieces or after_text else numbers(before, n), ok=False)


def verdict(reply: str) -> bool | None:
    """Whether yes follows the last "judgment" that yes or no follow; None if they follow none.
    Without the marker, whether the reply begins with yes."""
    before, *pieces = _JUDGMENT.split(reply)
    for piece in reversed(pieces or [before]):
        if found := _VERDICT.match(piece):
            return found.group(1).lower() == "yes"
    return None


def necessary_information(reply: str) -> str | None:
    """What follows the marker of an implicit answer, without its brackets; None without one."""
    found = _INFORMATION.search(reply)
    return reply[found.end() :].strip().strip("[]").strip() if found else None
