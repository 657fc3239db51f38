"""Splits texts into units with a value each, and selects the units that stay.

A unit is kept or dropped as a whole: a token of the reader, a word or a sentence. Words and
sentences consist of all tokens that begin in them.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from statistics import fmean
from typing import Literal, NamedTuple

import numpy as np

from hopscope.runtime.errors import ReaderError, UsageError
from hopscope.runtime.texts.sentences import spans
from hopscope.runtime.types import Passage, Scored

UnitKind = Literal["token", "word", "sentence"]
_WORD = re.compile(r"\s*\S+")


class Unit(NamedTuple):
    """A piece of a text."""

    text: str
    """The text with the space before it."""
    tokens: int
    value: float
    """Mean over its tokens."""


def checked(scored: Scored, reader: str) -> Scored:
    """
    Raises:
        ReaderError: the reader gives no likelihoods.
    """
    if len(scored.logprobs) != len(scored.tokens):
        raise ReaderError(
            f"compressing needs the probability of each token, which {reader} does not give: "
            "choose another reader, or @CP(summary)"
        )
    return scored


def units(tokens: Sequence[str], values: Sequence[float], kind: UnitKind) -> list[Unit]:
    """The text that the tokens spell, in units."""
    text = "".join(tokens)
    if kind == "token":
        return [Unit(t, 1, value) for t, value in zip(tokens, values, strict=True)]
    # A pattern would scan final spaces, which no word follows, once for each of them.
    pieces = _WORD.findall(text.rstrip()) if kind == "word" else sentences(text)
    collected: list[Unit] = []
    at = end = start = 0
    for number, piece in enumerate(pieces, start=1):
        end += len(piece)
        first = at
        # The last piece takes the rest: spaces at the end, tokens without text.
        while at < len(tokens) and (start < end or number == len(pieces)):
            start += len(tokens[at])
            at += 1
        value = fmean(values[first:at]) if at > first else collected[-1].value if collected else 0.0
        collected.append(Unit(piece, at - first, value))
    return collected


def sentences(text: str) -> list[str]:
    """The text split after each sentence; joined, the pieces are the text."""
    ends = [end for _, end in spans(text)] or [0]
    ends[-1] = len(text)
    return [text[a:b] for a, b in pairwise(sorted({0, *ends}))]


def above_percentile(texts: Sequence[Sequence[Unit]], ratio: float) -> list[list[Unit]]:
    """The units of each text without those whose value lies strictly below the percentile `ratio`
    of all."""
    values = [unit.value for text in texts for unit in text]
    if not values:
        return [[] for _ in texts]
    least = float(np.percentile(values, 100 * ratio))
    return [[unit for unit in text if unit.value >= least] for text in texts]


def within(texts: Sequence[Sequence[Unit]], tokens: int) -> list[list[Unit]]:
    """The units of the highest values, of equal ones the earlier, that together have at most
    `tokens` tokens; in their old order."""
    places = [(t, u) for t, text in enumerate(texts) for u in range(len(text))]
    kept: set[tuple[int, int]] = set()
    for t, u in sorted(places, key=lambda place: -texts[place[0]][place[1]].value):
        if texts[t][u].tokens <= tokens:
            kept.add((t, u))
            tokens -= texts[t][u].tokens
    return [[unit for u, unit in enumerate(text) if (t, u) in kept] for t, text in enumerate(texts)]


def total(texts: Sequence[Sequence[Unit]]) -> int:
    """Number of tokens."""
    return sum(unit.tokens for text in texts for unit in text)


def spelled(kept: Sequence[Unit]) -> str:
    return " ".join("".join(unit.text for unit in kept).split())


def budget(rate: float, tokens: int | None, before: int) -> int:
    """Most tokens that may stay: `tokens`, else the share `rate` of those before, rounded up."""
    return tokens if tokens is not None else ceil(round(rate * before, 9))


def check(name: str, share: float, tokens: int | None) -> None:
    """
    Raises:
        UsageError: a share outside of [0, 1], or no token to keep.
    """
    if not 0 <= share <= 1:
        raise UsageError(f"{name}: a share of {share:g} is not from 0 to 1")
    if tokens is not None and tokens < 1:
        raise UsageError(f"{name}: tokens={tokens}: keep one token or more")


def texts(passages: Sequence[Passage]) -> list[str]:
    """The texts to score, without spaces at the ends, which readers treat differently."""
    return [passage.text.strip() for passage in passages]
