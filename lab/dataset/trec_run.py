"""Rankings in TREC's form, which TREC calls a run: lines `QUESTION Q0 PASSAGE RANK SCORE TAG`.

As for trec_eval, the score decides the order, the highest first; of equal scores the lower rank is
first. Ids that `hopscope export trec` and `index search --trec` wrote with percent signs are read
back by whoever looks them up, as `unquote` gives them.
"""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from hopscope.runtime.errors import CorpusError, unreadable

FORM = "`QUESTION Q0 PASSAGE RANK SCORE TAG`"


class Ranked(NamedTuple):
    """A passage of a ranking."""

    passage: str
    """Its id."""
    score: float
    rank: int
    line: int
    """In the file, from 1 on."""


def read(path: Path) -> Mapping[str, list[Ranked]]:
    """The ranking of each question by its id, the best passage first; questions are in the order
    of the file.

    Raises:
        CorpusError: the file cannot be read or is empty, a line has another form, or a question
            has a passage twice.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(unreadable(path, error, "a TREC run")) from None
    found: dict[str, dict[str, Ranked]] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        if len(words) != 6:
            raise CorpusError(
                f"{path}, line {number}: {len(words)} columns; a TREC run has six: {FORM}"
            )
        question, _, passage, rank, score, _ = words
        of = found.setdefault(question, {})
        if passage in of:
            raise CorpusError(
                f"{path}, line {number}: question {question:.60} has passage {passage:.60} "
                f"already, in line {of[passage].line}; leave one"
            )
        of[passage] = Ranked(passage, *_numbers(path, number, score, rank), number)
    if not found:
        raise CorpusError(f"{path} is empty; a TREC run has lines {FORM}")
    return {
        question: sorted(of.values(), key=lambda one: (-one.score, one.rank))
        for question, of in found.items()
    }


def _numbers(path: Path, line: int, score: str, rank: str) -> tuple[float, int]:
    try:
        value, place = float(score), int(rank)
    except ValueError:
        value, place = float("nan"), 0
    if not isfinite(value):
        raise CorpusError(
            f"{path}, line {line}: rank {rank:.60} is no whole number, or score {score:.60} no "
            f"number; a TREC run has lines {FORM}"
        )
    return value, place
