"""What a server of OpenAI's API replied, in whichever of its forms it told probabilities.

Completions tell them in parallel lists, with alternatives in a dictionary; chats in a list of
tokens. llama.cpp does the latter everywhere.
"""

import codecs
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

ID = "token_id:"
"""Begins the text of a token that is spelled by its id."""


class Token(NamedTuple):
    """A generated token."""

    piece: str | None
    """The text it adds; None where only its id was told."""
    id: int | None
    logprob: float
    alternatives: tuple[float, ...]
    """ln p of the likeliest tokens and of this one, each once; empty where none were told."""


class Choice(NamedTuple):
    """One continuation as the server tells it."""

    text: str
    finish: str
    stopped_by: str | None
    """The stop string, if the server names it."""
    names_stop: bool
    """Whether the server would name it."""
    tokens: tuple[Token, ...]
    """All it tells probabilities of: often an end token and what wrote a stop string, too, and the
    thought."""
    thought: str | None = None
    """What was thought before; None where the server does not part it from the text."""
    unfinished: bool = False
    """Whether the reply ended within its thought, as its marks tell."""
    refused: tuple[str, ...] = ()
    """Options of the request that did not hold, because the server refuses them."""


def choices(answer: Any) -> list[Choice]:
    """All continuations in an answer.

    Raises:
        LookupError, TypeError, ValueError, AttributeError, ArithmeticError: it is none of OpenAI's
            API.
    """
    return [_choice(one) for one in sorted(answer["choices"], key=lambda c: c.get("index", 0))]


def _choice(told: Mapping[str, Any]) -> Choice:
    thought = None
    if "message" in told:
        text, thought = _parts(told["message"])
    else:
        text = told["text"]
    if text is not None:
        _text(text)
    named = told.get("stop_reason")
    likelihoods = told.get("logprobs") or {}
    if likelihoods.get("content") is not None:
        tokens = _of_list(likelihoods["content"])
    elif likelihoods.get("token_logprobs") is not None:
        tokens = _of_columns(likelihoods)
    else:
        tokens = []
    return Choice(
        text=text or "",
        finish=str(told.get("finish_reason") or "stop"),
        stopped_by=named if isinstance(named, str) else None,
        names_stop="stop_reason" in told,
        tokens=tuple(tokens),
        thought=thought,
    )


def _parts(message: Mapping[str, Any]) -> tuple[Any, str | None]:
    """What a message answers, and what was thought before it."""
    content = message.get("content")
    thought = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(content, list):  # Mistral's models that think
        parts: dict[str, list[str]] = {"text": [], "thinking": []}
        for each in content:
            inner = each[each["type"]]
            inner = inner if isinstance(inner, list) else [{"text": inner}]
            parts[each["type"]] += [_text(one["text"]) for one in inner]
        content, thought = "".join(parts["text"]), "".join(parts["thinking"]) or thought
    return content, thought if isinstance(thought, str) else None


def _of_columns(told: Mapping[str, Any]) -> list[Token]:
    texts, logprobs = told["tokens"], told["token_logprobs"]
    rows = told.get("top_logprobs") or [None] * len(texts)
    found = []
    for text, logprob, row in zip(map(_text, texts), logprobs, rows, strict=True):
        among = {**(row or {}), text: logprob} if row is not None else {}
        found.append(_token(text, None, logprob, among.values()))
    return found


def _of_list(told: Sequence[Mapping[str, Any]]) -> list[Token]:
    spell = codecs.getincrementaldecoder("utf-8")("replace").decode
    found = []
    for at, entry in enumerate(told):
        data = entry.get("bytes")
        piece = _text(entry["token"])
        if isinstance(data, list):  # a token can end within a character
            piece = spell(bytes(data), at == len(told) - 1)
        among = {_identity(other): other["logprob"] for other in entry.get("top_logprobs") or ()}
        if among:
            among[_identity(entry)] = entry["logprob"]
        identity = entry.get("id", entry["token"])
        found.append(_token(identity, piece, entry["logprob"], among.values()))
    return found


def _text(told: Any) -> str:
    """Raises ValueError where text is something else: a number, or a list of parts."""
    if not isinstance(told, str):
        raise ValueError("this is no text")
    return told


def _identity(entry: Mapping[str, Any]) -> object:
    """What tells tokens apart: an id, or else text and bytes, of which each can be equal."""
    if "id" in entry or str(entry["token"]).startswith(ID):
        return entry.get("id", entry["token"])
    return entry["token"], tuple(entry.get("bytes") or ())


def _token(identity: str | int, piece: str | None, logprob: float, among: Any) -> Token:
    """Raises ValueError where a number is not finite."""
    by_id = isinstance(identity, str) and identity.startswith(ID)
    number = int(str(identity)[len(ID) :]) if by_id else identity
    told = [float(logprob), *map(float, among)]
    if not all(map(math.isfinite, told)):
        raise ValueError("a log-probability is not finite")
    own, *others = (min(0.0, one) for one in told)
    return Token(
        piece=identity if piece is None and isinstance(identity, str) and not by_id else piece,
        id=number if isinstance(number, int) else None,
        logprob=own,
        alternatives=tuple(others),
    )


def entropy(logprobs: Sequence[float], *, whole: bool) -> float:
    """Entropy in nats. Of a truncated distribution, what is left out counts as one more outcome,
    so the whole distribution has this much at least."""
    possible = [logprob for logprob in logprobs if math.exp(logprob) > 0]
    rest = 0.0 if whole else max(0.0, 1.0 - math.fsum(map(math.exp, possible)))
    left_out = -rest * math.log(rest) if rest > 0 else 0.0
    return max(0.0, left_out - math.fsum(math.exp(logprob) * logprob for logprob in possible))
