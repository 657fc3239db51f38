"""Which of the tokens that a server told of spell the text that it gave, and which ended it.

Servers cut stop strings off the text but list the tokens that wrote them; some list the end token,
some do not. A record has neither: see `Generation`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from hopscope.runtime.readers._choices import Choice
from hopscope.runtime.types import FinishReason


class Ending(NamedTuple):
    """How a reply ended."""

    reason: FinishReason
    pieces: tuple[str, ...]
    """The text of each token that is kept, which are the first ones."""
    by: int | None
    """Position of the token whose log-probability is the `end_logprob`."""


def ending(choice: Choice, pieces: Sequence[str] | None, stop: Sequence[str]) -> Ending:
    """How a reply ended and what it consists of; `pieces` is the text of each of its tokens, None
    where that is unknown. Without tokens that spell the text none is kept."""
    found = _fitted(choice.text, pieces or ())
    if found is None:
        unknown = _reason(choice, "", stop) or "stop"
        return Ending(unknown, (), None)
    rest = "".join(found)[len(choice.text) :]
    reason = _reason(choice, rest, stop)
    if reason == "length":
        return Ending("length", tuple(found), None)
    last = len(found) - 1
    if found and reason != "stop" and "".join(found[:last]) == choice.text:
        return Ending("eos", tuple(found[:last]), last)
    if reason == "eos" and not rest:
        return Ending("eos", tuple(found), None)
    kept = start = 0
    while kept < len(found) and start < len(choice.text):
        start += len(found[kept])
        kept += 1
    by = 0 if kept == 0 and found else None
    return Ending(reason or "stop", tuple(found[:kept]), by)


def _reason(choice: Choice, rest: str, stop: Sequence[str]) -> FinishReason | None:
    """Why it ended; None where it may have been the end token or a stop string."""
    if choice.finish == "length":
        return "length"
    if choice.stopped_by is not None or rest.startswith(tuple(filter(None, stop)) or ("\0",)):
        return "stop"
    return "eos" if choice.names_stop or not stop else None


def _fitted(text: str, pieces: Sequence[str]) -> list[str] | None:
    """What each token adds to the text, and then to what was cut off, if they spell it.

    Some servers trim the space before a text, and none shows special tokens.
    """
    fitted: list[str] = []
    left = text
    for told in pieces:
        piece = told if left != text or told.startswith(text[:1]) else told.lstrip()
        if left and not left.startswith(piece) and not piece.startswith(left):
            piece = ""
        fitted.append(piece)
        left = left[len(piece) :]
    return None if left else fitted
