"""Parses replies of OpenAI's API, with probabilities in either of its two forms.

Completions have parallel lists, with alternatives in a dictionary; chats have a list of tokens.
llama.cpp uses the latter everywhere.
"""

import codecs
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hopscope.runtime.prompting import tool_calls

ID = "token_id:"
"""Prefix of the text of a token that is spelled by its id."""


class Token(NamedTuple):
    """A generated token."""

    piece: str | None
    """The text of the token; None where only its id is known."""
    id: int | None
    logprob: float
    alternatives: tuple[float, ...]
    """ln p of the likeliest tokens and of this one, each once; empty if the server sent none."""


class CompletionChoice(NamedTuple):
    """One continuation in a server's reply."""

    text: str
    finish: str
    stopped_by: str | None
    """The stop string, if the server names it."""
    names_stop: bool
    """Whether this server names stop strings."""
    tokens: tuple[Token, ...]
    """All tokens with probabilities; often with the end token, the tokens of a stop string, and
    the thought."""
    thought: str | None = None
    """The thought before the text; None if the server does not separate it."""
    unfinished: bool = False
    """Whether the reply ended within its thought, by its marks."""
    refused: tuple[str, ...] = ()
    """Options of the request that had no effect, because the server refuses them."""


def choices(answer: Any) -> list[CompletionChoice]:
    """All continuations in an answer.

    Raises:
        LookupError, TypeError, ValueError, AttributeError, ArithmeticError: the answer does not
            follow OpenAI's API.
    """
    return [_choice(one) for one in sorted(answer["choices"], key=lambda c: c.get("index", 0))]


def _choice(choice: Mapping[str, Any]) -> CompletionChoice:
    thought = None
    calls = choice["message"].get("tool_calls") if "message" in choice else None
    if "message" in choice:
        text, thought = _parts(choice["message"])
    else:
        text = choice["text"]
    if text is not None:
        _text(text)
    named = choice.get("stop_reason")
    likelihoods = choice.get("logprobs") or {}
    if likelihoods.get("content") is not None:
        tokens = _of_list(likelihoods["content"])
    elif likelihoods.get("token_logprobs") is not None:
        tokens = _of_columns(likelihoods)
    else:
        tokens = []
    finish = str(choice.get("finish_reason") or "stop")
    if calls:
        made = [(_text(c["function"]["name"]), c["function"]["arguments"]) for c in calls]
        text, tokens = tool_calls.write(text or "", made), []  # which spell it otherwise
        finish = "stop" if finish == "tool_calls" else finish
    return CompletionChoice(
        text=text or "",
        finish=finish,
        stopped_by=named if isinstance(named, str) else None,
        names_stop="stop_reason" in choice,
        tokens=tuple(tokens),
        thought=thought,
    )


def _parts(message: Mapping[str, Any]) -> tuple[Any, str | None]:
    """The answer in a message, and the thought before it."""
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


def _of_columns(columns: Mapping[str, Any]) -> list[Token]:
    texts, logprobs = columns["tokens"], columns["token_logprobs"]
    rows = columns.get("top_logprobs") or [None] * len(texts)
    tokens = []
    for text, logprob, row in zip(map(_text, texts), logprobs, rows, strict=True):
        among = {**(row or {}), text: logprob} if row is not None else {}
        tokens.append(_token(text, None, logprob, among.values()))
    return tokens


def _of_list(entries: Sequence[Mapping[str, Any]]) -> list[Token]:
    spell = codecs.getincrementaldecoder("utf-8")("replace").decode
    tokens = []
    for at, entry in enumerate(entries):
        data = entry.get("bytes")
        piece = _text(entry["token"])
        if isinstance(data, list):  # a token can end within a character
            piece = spell(bytes(data), at == len(entries) - 1)
        among = {_identity(other): other["logprob"] for other in entry.get("top_logprobs") or ()}
        if among:
            among[_identity(entry)] = entry["logprob"]
        identity = entry.get("id", entry["token"])
        tokens.append(_token(identity, piece, entry["logprob"], among.values()))
    return tokens


def _text(value: Any) -> str:
    """Raises ValueError if the value is no text but a number or a list of parts."""
    if not isinstance(value, str):
        raise ValueError("this is no text")
    return value


def _identity(entry: Mapping[str, Any]) -> object:
    """The identity of a token: its id, else its text and bytes, of which one alone can be equal."""
    if "id" in entry or str(entry["token"]).startswith(ID):
        return entry.get("id", entry["token"])
    return entry["token"], tuple(entry.get("bytes") or ())


def _token(identity: str | int, piece: str | None, logprob: float, among: Any) -> Token:
    """Raises ValueError if a number is not finite."""
    by_id = isinstance(identity, str) and identity.startswith(ID)
    number = int(str(identity)[len(ID) :]) if by_id else identity
    logprobs = [float(logprob), *map(float, among)]
    if not all(map(math.isfinite, logprobs)):
        raise ValueError("a log-probability is not finite")
    own, *others = (min(0.0, one) for one in logprobs)
    return Token(
        piece=identity if piece is None and isinstance(identity, str) and not by_id else piece,
        id=number if isinstance(number, int) else None,
        logprob=own,
        alternatives=tuple(others),
    )


def entropy(logprobs: Sequence[float], *, whole: bool) -> float:
    """Entropy in nats. The rest of a truncated distribution counts as one more outcome, so the
    result is a lower bound for the whole distribution."""
    possible = [logprob for logprob in logprobs if math.exp(logprob) > 0]
    rest = 0.0 if whole else max(0.0, 1.0 - math.fsum(map(math.exp, possible)))
    left_out = -rest * math.log(rest) if rest > 0 else 0.0
    return max(0.0, left_out - math.fsum(math.exp(logprob) * logprob for logprob in possible))
