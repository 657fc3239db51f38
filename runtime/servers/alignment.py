"""Aligns a server's tokens with its text, and finds the token that ended the text.

Servers cut stop strings off the text but list their tokens; some list the end token, some do not.
A record has neither: see `Generation`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from hopscope.runtime.servers.replies import CompletionChoice
from hopscope.runtime.types import FinishReason


class Ending(NamedTuple):
    """The end of a reply."""

    reason: FinishReason
    pieces: tuple[str, ...]
    """The texts of the kept tokens, which are the first ones."""
    by: int | None
    """Position of the token whose log-probability is the `end_logprob`."""


def ending(choice: CompletionChoice, pieces: Sequence[str] | None, stop: Sequence[str]) -> Ending:
    """The end of a reply and its tokens. `pieces` is the text of each token, or None if unknown.
    If the tokens do not spell the text, none is kept."""
    pieces_kept = _fitted(choice.text, pieces or ())
    if pieces_kept is None:
        unknown = _reason(choice, "", stop) or "stop"
        return Ending(unknown, (), None)
    rest = "".join(pieces_kept)[len(choice.text) :]
    reason = _reason(choice, rest, stop)
    if reason == "length":
        return Ending("length", tuple(pieces_kept), None)
    last = len(pieces_kept) - 1
    if pieces_kept and reason != "stop" and "".join(pieces_kept[:last]) == choice.text:
        return Ending("eos", tuple(pieces_kept[:last]), last)
    if reason == "eos" and not rest:
        return Ending("eos", tuple(pieces_kept), None)
    kept = start = 0
    while kept < len(pieces_kept) and start < len(choice.text):
        start += len(pieces_kept[kept])
        kept += 1
    by = 0 if kept == 0 and pieces_kept else None
    return Ending(reason or "stop", tuple(pieces_kept[:kept]), by)


def _reason(choice: CompletionChoice, rest: str, stop: Sequence[str]) -> FinishReason | None:
    """The reason of the end; None if it may be the end token or a stop string."""
    if choice.finish == "length":
        return "length"
    if choice.stopped_by is not None or rest.startswith(tuple(filter(None, stop)) or ("\0",)):
        return "stop"
    return "eos" if choice.names_stop or not stop else None


def _fitted(text: str, pieces: Sequence[str]) -> list[str] | None:
    """The text that each token adds, first to the text and then to its cut-off rest; None if the
    tokens do not spell it.

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
