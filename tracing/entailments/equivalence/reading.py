"""An answer read in the light of the golds, where its own words hide that it agrees with one.

| in the answer                                  | beside the gold      | is read as   |
|------------------------------------------------|----------------------|--------------|
| "areQandZ", "byMarta Oduya"                    | "Q and Z", ...       | its words    |
| "20141", a year and the number of a footnote   | "2014"               | the gold's   |
| "about 225 days", the gold's number rounded    | "224.7 days"         | the gold's   |
| "2018", a time that holds the gold's or is in it | "14 February 2018" | the gold's   |
| "Bill Harrow", "Petrovski", "J. M. Oduya"      | "William Harrow", ...| the gold's   |
| "Götterdämmerung"                              | "Gtterdmmerung"      | the gold's   |
| "Great Britain"                                | "United Kingdom"     | the gold's   |

Nothing is changed in an answer that contains a gold. A reading only replaces words: the judgement
is the model's.
"""

import re
import unicodedata
from collections.abc import Mapping
from math import floor, log10

from hopscope.tracing.entailments.equivalence._english import (
    EXACT_DAY,
    FUNCTION_WORDS,
    HOW_MANY,
    NEAR,
)
from hopscope.tracing.entailments.equivalence.golds import Golds
from hopscope.tracing.entailments.equivalence.times import Relation, Time, relation, times
from hopscope.tracing.entailments.equivalence.words import (
    SHORTEST_SOUND,
    Text,
    is_number,
    sound,
)

LEAST_ROUNDED = 2
"""Significant digits of a rounded number."""
FARTHEST_ROUNDED = 0.01
"""Its largest relative distance to the exact one."""
MOST_WORDS = 1000
"""Further words of an answer are read as they stand."""
MOST_NUMBERS = 50
"""Further numbers of golds are not looked for."""
NEIGHBOURS = 3
"""Words on either side of a first name, one of which must be the gold's, too."""
CERTAINLY_NO_YEAR = 10_000
_GLUED = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=(?:and|or)[A-Z])|(?<=[A-Z](?:or))(?=[A-Z])"
                    r"|(?<=[A-Z]and)(?=[A-Z])")  # fmt: skip
_ACCENTED = re.compile(r"[^\W\d_a-zA-Z]")
_HINT = re.compile(r"[a-z][A-Z]")


def read(golds: Golds, answer: Text) -> Text:
    """The answer in the golds' words where it says the same, or the answer itself."""
    if not answer.words or any(reading.text.spaced in answer.spaced for reading in golds.full):
        return answer
    if _HINT.search(answer.raw):
        apart = Text(_GLUED.sub(" ", answer.raw))
        if any(reading.text.spaced in apart.spaced for reading in golds.full):
            return apart
    if not answer.raw.isascii():
        plain = Text(_ACCENTED.sub("", unicodedata.normalize("NFC", answer.raw)))
        if any(reading.text.spaced in plain.spaced for reading in golds.full):
            return plain
    words = answer.words
    for change in (_places, _names, _initials, _numbers, _times):
        words = change(golds, words)
    return answer if words is answer.words else Text(answer.raw, words)


def _places(golds: Golds, words: list[str]) -> list[str]:
    if not golds.places:
        return words
    spaced = f" {' '.join(words)} "
    for form, name in golds.places:
        if form in spaced:
            return spaced.replace(form, name).split()
    return words


def _names(golds: Golds, words: list[str]) -> list[str]:
    """First names beside another word of the same gold, and words that sound alike."""
    changed: dict[int, str] = {}
    for at, word in enumerate(words[:MOST_WORDS]):
        if word in golds.words:
            continue
        name = None
        if word in golds.first_names:
            near = words[max(0, at - NEIGHBOURS) : at] + words[at + 1 : at + 1 + NEIGHBOURS]
            name = next(
                (
                    name
                    for name, text in golds.first_names[word]
                    if any(other in text.words and other not in FUNCTION_WORDS for other in near)
                ),
                None,
            )
        elif len(word) >= SHORTEST_SOUND - 1 and not is_number(word):
            name = golds.sounds.get(sound(word))
        if name:
            changed[at] = name
    return _with(changed, words)


def _initials(golds: Golds, words: list[str]) -> list[str]:
    """Names whose first names one side abbreviates: "J. M. Oduya" and "Joan Mary Oduya"."""
    for gold in golds.initialled:
        *firsts, last = gold.words
        if len(last) == 1 or last not in words:
            continue
        end = words.index(last)
        start = end - len(firsts)
        if start < 0 or words[start:end] == firsts:
            continue
        if all(map(_abbreviates, words[start:end], firsts)):
            return [*words[:start], *firsts, *words[end:]]
    return words


def _abbreviates(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return short == long or (len(short) == 1 and short.isalpha() and long[0] == short)


def _numbers(golds: Golds, words: list[str]) -> list[str]:
    """Years with the number of a footnote, and rounded numbers."""
    if not golds.numbers:
        return words
    known = sorted(frozenset().union(*golds.numbers))[:MOST_NUMBERS]
    counts = bool(HOW_MANY.search(golds.question.raw.casefold()))
    year = bool(golds.times) and not counts
    changed: dict[int, str] = {}
    for at, word in enumerate(words[:MOST_WORDS]):
        if not is_number(word) or word in known or word in golds.question.numbers:
            continue
        near = not NEAR.isdisjoint(words[max(0, at - 2) : at])
        for number in known:
            footnoted = not counts and _footnoted(word, number)
            if footnoted or (not year and _rounded(word, number, near=near)):
                changed[at] = number
                break
    return _with(changed, words)


def _with(changed: Mapping[int, str], words: list[str]) -> list[str]:
    if not changed:
        return words
    return [changed.get(at, word) for at, word in enumerate(words)]


def _footnoted(word: str, number: str) -> bool:
    """Whether it is the year with one or two more digits."""
    year = number.isdecimal() and len(number) == 4 and "1" <= number[0] <= "2"
    return year and word.isdecimal() and word.startswith(number) and 4 < len(word) <= 6


def _rounded(one: str, other: str, *, near: bool) -> bool:
    """Whether one number is the other with fewer digits."""
    if not (near or "." in one + other or float(one) >= CERTAINLY_NO_YEAR):
        return False
    (coarse_digits, coarse), (fine_digits, fine) = sorted(
        (_significant(text), float(text)) for text in (one, other)
    )
    if coarse_digits < LEAST_ROUNDED or coarse_digits == fine_digits or not coarse:
        return False
    last = 10.0 ** (floor(log10(abs(coarse))) - coarse_digits + 1)
    apart = abs(fine - coarse)
    return apart < 0.5 * last and apart <= FARTHEST_ROUNDED * abs(fine)


def _significant(number: str) -> int:
    """Its digits without zeros at both ends."""
    if "." in number:
        return len(number.replace(".", "").lstrip("0"))
    return len(number.strip("0"))


def _times(golds: Golds, words: list[str]) -> list[str]:
    """The answer's time as the gold's, if it has one that agrees."""
    if not golds.times:
        return words
    exact = bool(EXACT_DAY.search(golds.question.raw.casefold()))
    for time in answer_times(golds, words):
        for gold in golds.times:
            if gold.spans or (exact and lacks_day(time, gold.time)):
                continue
            if relation(time, gold.time) is Relation.AGREES:
                return [*words[: time.start], *gold.words, *words[time.end :]]
    return words


def answer_times(golds: Golds, words: list[str]) -> list[Time]:
    """The times that the question does not name."""
    asked = {(time.low, time.high) for time in times(golds.question.words)}
    return [time for time in times(words) if (time.low, time.high) not in asked]


def lacks_day(time: Time, gold: Time) -> bool:
    """Whether only the gold is a day."""
    return gold.high - gold.low == 1 < time.high - time.low
