"""Days, months, years, decades and centuries in the words of a text, as spans that can be compared.

"14 February 2018" lies in "2018", "around 950" in "mid-10th century", and "the 1800s" is "the 19th
century". Years have 12 months of 31 days here, which keeps the order and is enough to compare.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from hopscope.tracing.entailments.equivalence._english import (
    DECADES,
    FUNCTION_WORDS,
    MONTH_NUMBERS,
    NEAR,
    PARTS,
    WEEKDAYS,
)

DAYS, MONTHS_OF_YEAR = 31, 12
YEAR = DAYS * MONTHS_OF_YEAR
LATEST = 2100
"""The last year that a number can be."""
EARLIEST_ALONE = 100
"""The first year that a number without an era can be."""
LAST_CENTURY = 21
BEFORE = frozenset(["bc", "bce"])
SINCE = frozenset(["ad", "ce"])
BETWEEN = frozenset(["the", "of"])
"""May stand between a day and its month, or a part and its century."""
FILLING = FUNCTION_WORDS | WEEKDAYS | NEAR | SINCE | {"year", "years", "date", "sometime"}
"""May stand beside a time in an answer that is nothing but a time."""

_BEGINNING = MONTH_NUMBERS.keys() | DECADES.keys()
"""Words that begin a time, beside numbers."""


class Time(NamedTuple):
    """A span of days."""

    low: int
    high: int
    """The first day after it."""
    dated: bool
    """Whether the year is known; otherwise the span lies in year 0."""
    start: int
    """The index of its first word."""
    end: int
    """The index after its last word."""
    whole: tuple[int, int] | None = None
    """The span of which it is the early, middle or late part."""


class Relation(Enum):
    """Whether a time in an answer fits that of a gold."""

    AGREES = "agrees"
    APART = "apart"
    UNCLEAR = "unclear"


def times(words: Sequence[str]) -> list[Time]:
    """The times in a text, in order; words are those of `words.Text`."""
    found: list[Time] = []
    at = 0
    while at < len(words):
        if words[at][0] > "9" and words[at] not in _BEGINNING:
            at += 1
            continue
        time = _month(words, at) or _century(words, at) or _decade(words, at) or _year(words, at)
        if time:
            found.append(_with_part(words, time))
            at = time.end
        else:
            at += 1
    return found


def only_times(words: Sequence[str], found: Sequence[Time]) -> bool:
    """Whether a text is nothing but these times."""
    inside = {at for time in found for at in range(time.start, time.end)}
    return bool(found) and all(at in inside or word in FILLING for at, word in enumerate(words))


def relation(answer: Time, gold: Time) -> Relation:
    """Whether the answer's time is the gold's, lies in it, or is its month, its year or the whole
    of which it is a part; or is another."""
    if answer.dated != gold.dated:
        dated = answer if answer.dated else gold
        if dated.high - dated.low > DAYS:
            return Relation.UNCLEAR
        answer, gold = _without_year(answer), _without_year(gold)
    if answer.high <= gold.low or gold.high <= answer.low:
        return Relation.APART
    if gold.low <= answer.low and answer.high <= gold.high:
        return Relation.AGREES
    holds = answer.low <= gold.low and gold.high <= answer.high
    near = answer.high - answer.low <= YEAR or (answer.low, answer.high) == gold.whole
    return Relation.AGREES if holds and near else Relation.UNCLEAR


def coarser(time: Time, other: Time) -> bool:
    """Whether a time only holds the other, which is finer."""
    if time.high - time.low <= other.high - other.low:
        return False
    if time.dated != other.dated:
        return time.dated and time.high - time.low == YEAR
    return time.low <= other.low and other.high <= time.high


def _without_year(time: Time) -> Time:
    first = time.low // YEAR * YEAR
    return time._replace(low=time.low - first, high=time.high - first)


def _month(words: Sequence[str], at: int) -> Time | None:
    """A month with its day and year, if it has them, in either order."""
    end = at
    day = _whole(words[at])
    if day is not None:
        end = _past(words, at + 1)
    if end >= len(words) or (month := MONTH_NUMBERS.get(words[end])) is None:
        return None
    if day is not None and not 1 <= day <= DAYS:
        return None
    if words[end] == "may" and day is None and not _number_beside(words, end):
        return None
    end += 1
    if day is None and (after := _past(words, end)) < len(words):
        day = _whole(words[after])
        if day is not None and 1 <= day <= DAYS:
            end = after + 1
        else:
            day = None
    year, end = _year_after(words, end)
    low = (year or 0) * YEAR + (month - 1) * DAYS + (day - 1 if day else 0)
    return Time(low, low + (1 if day else DAYS), year is not None, at, end)


def _number_beside(words: Sequence[str], at: int) -> bool:
    """Tells the month of May from the verb."""
    return at + 1 < len(words) and _whole(words[at + 1]) is not None


def _past(words: Sequence[str], at: int) -> int:
    while at < len(words) and words[at] in BETWEEN:
        at += 1
    return at


def _year_after(words: Sequence[str], at: int) -> tuple[int | None, int]:
    after = _past(words, at)
    if after < len(words) and (found := _year(words, after)):
        return found.low // YEAR, found.end
    return None, at


def _year(words: Sequence[str], at: int) -> Time | None:
    year = _whole(words[at])
    if year is None:
        return None
    before, end = _era(words, at + 1)
    if (before is None and not EARLIEST_ALONE <= year <= LATEST) or year > LATEST:
        return None
    year = -year if before else year
    return Time(year * YEAR, (year + 1) * YEAR, True, at, end)


def _era(words: Sequence[str], at: int) -> tuple[bool | None, int]:
    """Whether an era is before Christ, None without one, and the index after it."""
    if at < len(words) and words[at] in BEFORE | SINCE:
        return words[at] in BEFORE, at + 1
    if list(words[at : at + 2]) == ["b", "c"]:
        return True, at + 2
    if list(words[at : at + 2]) == ["a", "d"]:
        return False, at + 2
    return None, at


def _century(words: Sequence[str], at: int) -> Time | None:
    number = _whole(words[at])
    if number is None or at + 1 >= len(words) or not 1 <= number <= LAST_CENTURY:
        return None
    if words[at + 1] not in ("century", "centuries"):
        return None
    before, end = _era(words, at + 2)
    first = -100 * number if before else 100 * (number - 1)
    return Time(first * YEAR, (first + 100) * YEAR, True, at, end)


def _decade(words: Sequence[str], at: int) -> Time | None:
    """Years with an s: "the 1960s", and "the 1800s", a century."""
    if words[at] in DECADES:
        first = DECADES[words[at]]
        return Time(first * YEAR, (first + 10) * YEAR, True, at, at + 1)
    number = _whole(words[at])
    if number is None or number % 10 or list(words[at + 1 : at + 2]) != ["s"]:
        return None
    if not EARLIEST_ALONE <= number <= LATEST:
        return None
    before, end = _era(words, at + 2)
    years = 10 if number % 100 else 100
    first = -number - years if before else number
    return Time(first * YEAR, (first + years) * YEAR, True, at, end)


def _with_part(words: Sequence[str], time: Time) -> Time:
    """The early, middle or late part of a decade or century, if the text names one."""
    at = time.start - 1
    while at >= 0 and (words[at] in BETWEEN or words[at] == "in"):
        at -= 1
    years = (time.high - time.low) // YEAR
    part = PARTS.get(words[at]) if at >= 0 and years >= 10 else None
    if part is None:
        return time
    low, high = (time.low + years * share * YEAR // 100 for share in part)
    return time._replace(low=low, high=high, start=at, whole=(time.low, time.high))


def _whole(word: str) -> int | None:
    return int(word) if word.isdecimal() and len(word) <= 4 else None
