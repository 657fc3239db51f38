"""Rules that decide before the model: what no share of words shows."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rapidfuzz.distance import Indel

from hopscope.tracing.entailments.equivalence._english import (
    ASKING,
    AUXILIARIES,
    COMPARING,
    DENIALS,
    EXACT_DAY,
    FUNCTION_WORDS,
    NEGATING,
    OPPOSITES,
    OUTDONE,
    PREFIXES,
    RELATIVES,
    RIVALS,
)
from hopscope.tracing.entailments.equivalence._variants import PLACES
from hopscope.tracing.entailments.equivalence.golds import MOST_INITIALS, Golds, Reading
from hopscope.tracing.entailments.equivalence.quantities import (
    contradicted,
    may_be_signed,
    quantities,
    sign_matters,
)
from hopscope.tracing.entailments.equivalence.reading import answer_times, lacks_day
from hopscope.tracing.entailments.equivalence.times import Relation, relation
from hopscope.tracing.entailments.equivalence.words import Text, items, stem
from hopscope.tracing.entailments.lexical import polarity

ALIKE = 0.75
"""Similarity from which a word counts as a spelling of another."""
REPEATED = 0.6
"""The share of the question's words from which an answer repeats it."""
LONGEST_LIST = 50
"""Words of a gold that is read as a list."""
LONGEST_MENTIONED = 20
"""Words of a gold that an answer may only mention."""
MOST_WORDS = 1000
"""Of an answer, to look for the items of a list."""
LONGEST_OPPOSED = 6
"""Words of a gold; in a longer text a word and its opposite may say anything."""
SHORTEST_NEGATED = 4
"""Letters of a word that a prefix negates."""
_TRUTH = {"true": "yes", "false": "no"}
_PLACE = re.compile(r"(?i)(?!.*(?:&|\b(?:and|plus)\b))[^,;]+,[^,;]+")
"""One comma divides a place from its country: "Vienna, Austria"."""


class Decided(NamedTuple):
    """A probability that needs no model, with its rule."""

    probability: float
    rule: str


def decide(golds: Golds, answer: Text) -> Decided | None:
    """The judgement by the first rule that applies, or None."""
    if not answer.words or not golds.full:
        same = answer.raw.strip() and answer.raw.strip() in {raw.strip() for raw in golds.raw}
        return Decided(1.0, "the same symbols") if same else Decided(0.0, "nothing to compare")
    if answer.numbers and golds.numbers and _another_quantity(golds, answer):
        return Decided(0.0, "another sign or unit")
    if answer.spaced in golds.spaced:
        return Decided(1.0, "the same words")
    if golds.bare:
        wanted = set(filter(None, map(said_polarity, golds.bare)))
        if wanted and (asks_whether(golds.question) or _states(golds)):
            said = said_polarity(answer) or _judged(golds, answer)
            return Decided(float(said in wanted), f"says {said or 'neither yes nor no'}")
    if answer.numbers and _only_other_numbers(golds, answer):
        return Decided(0.0, "the same but for numbers")
    if golds.times and _another_time(golds, answer):
        return Decided(0.0, "another time")
    if _repeats_question(golds, answer):
        return Decided(0.0, "repeats the question")
    if _other_initials(golds, answer) or _other_middle_initials(golds, answer):
        return Decided(0.0, "other initials")
    if _another_place(golds, answer):
        return Decided(0.0, "another place")
    if _opposite(golds, answer):
        return Decided(0.0, "the opposite")
    if _part_of_list(golds, answer):
        return Decided(0.0, "a part of the list")
    if _only_mentions(golds, answer):
        return Decided(0.0, "only mentions it")
    return None


def said_polarity(text: Text) -> str | None:
    """Yes or no, if the text begins with one; true and false count."""
    return polarity(text.raw) or _TRUTH.get(text.words[0] if text.words else "")


def asks_whether(question: Text) -> bool:
    """Whether yes or no can answer the question; otherwise they are names, of a band or a film."""
    first = question.words[0] if question.words else ""
    return first in AUXILIARIES or ASKING.isdisjoint(question.words)


def _states(golds: Golds) -> bool:
    """Whether the question is a statement to be judged true or false."""
    truth = any(gold.words[0] in _TRUTH for gold in golds.bare)
    return truth and ASKING.isdisjoint(golds.question.words[:1])


def _judged(golds: Golds, answer: Text) -> str | None:
    """Whether an answer without yes or no repeats the question or denies it."""
    asked = set(golds.question.content)
    if not asked or len(asked & answer.stemset) < REPEATED * len(asked):
        return None
    return "yes" if DENIALS.isdisjoint(answer.words) else "no"


def _another_quantity(golds: Golds, answer: Text) -> bool:
    """Whether the answer has the golds' numbers, but with another sign or unit, and no gold without
    numbers."""
    if answer.numbers.isdisjoint(golds.all_numbers):
        return False
    if not golds.measured and not may_be_signed(answer.raw):
        return False
    said = quantities(Text(answer.raw))  # the answer itself, not as it was read beside the golds
    if not contradicted(golds.quantities, said, signed=sign_matters(golds.question)):
        return False
    return not any(
        reading.text.spaced in answer.spaced and not reading.text.numbers for reading in golds.full
    )


def _only_other_numbers(golds: Golds, answer: Text) -> bool:
    """Whether some gold differs in nothing but its numbers, and the answer has no other gold."""
    held = [r.text for r in golds.full if r.text.stemset <= answer.stemset]
    return any(
        _only_numbers_differ(reading.text, answer)
        and all(text.stemset < reading.text.stemset for text in held)
        for reading in golds.full
    )


def _only_numbers_differ(one: Text, other: Text) -> bool:
    if not one.numbers - other.numbers or not other.numbers - one.numbers:
        return False
    return one.stemset - one.numbers == other.stemset - other.numbers


def _another_time(golds: Golds, answer: Text) -> bool:
    """Whether the golds are times and all times of the answer are apart from them, or the question
    asks for a day and the answer names none."""
    said = answer_times(golds, answer.words)
    if not said or any(
        reading.text.spaced in answer.spaced and not reading.text.numbers for reading in golds.full
    ):
        return False
    wanted = [each.time for each in golds.times]
    if EXACT_DAY.search(golds.question.raw.casefold()):
        said = [time for time in said if not any(lacks_day(time, gold) for gold in wanted)]
    return all(relation(time, gold) is Relation.APART for time in said for gold in wanted)


def _repeats_question(golds: Golds, answer: Text) -> bool:
    """Whether the answer has no word beyond the question's, but every gold has. It may be a part
    of a gold, or one of the question's choices."""
    if "or" in golds.question.words or not golds.question.stemset.issuperset(answer.content):
        return False
    readings = [*golds.full, *golds.shorter]
    if any(answer.spaced in reading.text.spaced for reading in readings):
        return False
    return all(reading.recall_new(answer.stemset) == 0 for reading in readings)


def _other_initials(golds: Golds, answer: Text) -> bool:
    """Whether the answer is a name with first names that fit none of the gold's initials."""
    *firsts, last = answer.words
    if not 1 <= len(firsts) < MOST_INITIALS:
        return False
    same = [gold.words[:-1] for gold in golds.initialled if gold.words[-1] == last]
    return bool(same) and all(
        all(len(initial) == 1 for initial in initials)
        and not {first[0] for first in firsts} & set(initials)
        for initials in same
    )


def _other_middle_initials(golds: Golds, answer: Text) -> bool:
    """Whether the answer names somebody of a gold's first and last name, but with another initial
    between them: "George W. Bush" is not "George H. W. Bush"."""
    told = [gold.words for gold in golds.initialled if len(gold.words) > 2]
    if not told:
        return False
    verdicts = [
        _fitting(gold[1:-1], between)
        for gold in told
        for between in _between(answer.words, gold[0], gold[-1])
    ]
    return False in verdicts and True not in verdicts


def _between(words: Sequence[str], first: str, last: str) -> Iterator[Sequence[str]]:
    """What stands between the first and the last name, wherever both are in the text."""
    for at, word in enumerate(words):
        if word == first:
            near = words[at + 1 : at + MOST_INITIALS]
            if last in near and (between := near[: near.index(last)]):
                yield between


def _fitting(one: Sequence[str], other: Sequence[str]) -> bool | None:
    """Whether middle names may be those of one person: False if initials at one place differ, None
    if no initial decides."""
    pairs = list(zip(one, other, strict=False))
    if any(len(a) == len(b) == 1 and a != b for a, b in pairs):
        return False
    return True if all(a[0] == b[0] for a, b in pairs) else None


def _another_place(golds: Golds, answer: Text) -> bool:
    """Whether the answer is one of the places with several names, and a gold is another."""
    names = PLACES.get(answer.spaced.strip().removeprefix("the "))
    if names is None:
        return False
    wanted = {reading.text.spaced.strip().removeprefix("the ") for reading in golds.full}
    return names.isdisjoint(wanted) and not wanted.isdisjoint(PLACES)


def _opposite(golds: Golds, answer: Text) -> bool:
    """Whether the answer has a word's opposite where a gold has the word."""
    words, present = answer.words, frozenset(answer.words)
    held = [r.text for r in golds.full if r.text.spaced in answer.spaced]
    if held:
        short = all(len(gold.words) <= LONGEST_OPPOSED for gold in held)
        negates = short and not NEGATING.isdisjoint(words)
        return negates and all(_negated(words, gold) for gold in held)
    asked = frozenset(golds.question.words)
    for gold in (reading.text.words for reading in golds.full):
        if len(gold) > LONGEST_OPPOSED:
            continue
        for at, word in enumerate(gold):
            if word in present or word in FUNCTION_WORDS:
                continue
            for place, other in enumerate(words):
                if other in golds.words or (other in asked and word not in asked):
                    continue
                if _opposed(word, other) and _alike_beside(gold, at, answer, place):
                    return True
    return False


def _negated(words: Sequence[str], gold: Text) -> bool:
    size = len(gold.words)
    starts = [at for at in range(len(words)) if words[at : at + size] == gold.words]
    return all(at and words[at - 1] in NEGATING for at in starts)


def _opposed(one: str, other: str) -> bool:
    if other in OPPOSITES.get(one, ()):
        return True
    short, long = sorted((one, other), key=len)
    if len(short) < SHORTEST_NEGATED or not long.endswith(short):
        return False
    return long.removesuffix(short) in PREFIXES


def _alike_beside(gold: Sequence[str], at: int, answer: Text, place: int) -> bool:
    """Whether a neighbour of the two words is the same, or one text has no more words."""
    beside = {*gold[max(0, at - 1) : at], *gold[at + 1 : at + 2]} - FUNCTION_WORDS
    if not beside:
        return True
    words = answer.words
    near = {*words[max(0, place - 1) : place], *words[place + 1 : place + 2]}
    return not beside.isdisjoint(near) or len(answer.content) == 1


def _part_of_list(golds: Golds, answer: Text) -> bool:
    """Whether the question asks for several, and the answer has some but not all of them."""
    if not golds.lists or not _asks_for_several(golds.question):
        return False
    listed = [each for each in map(_items, golds.full) if len(each) > 1]
    plain = [r.text for r in golds.full if len(items(r.text.raw)) == 1]
    if not listed or any(text.spaced in answer.spaced for text in plain):
        return False
    asked = golds.question.stemset
    said = frozenset(answer.stems[:MOST_WORDS])
    shares = [[_has(item, said, asked) for item in each] for each in listed]
    return any(any(share) for share in shares) and not any(all(share) for share in shares)


def _asks_for_several(question: Text) -> bool:
    words = question.words
    if "both" in words or "pair" in words:
        return True
    if list(words[:2]) in [["who", "are"], ["who", "were"], ["what", "are"], ["what", "were"]]:
        return True
    return any(
        word in _SEVERAL
        and not _LISTING.isdisjoint(words[max(0, at - 3) : at])
        and any(other.endswith("s") for other in words[at + 1 : at + 4])
        for at, word in enumerate(words)
    )


_LISTING = frozenset(["which", "what", "name", "the", "are", "were"])
_SEVERAL = frozenset(map(str, range(2, 10)))


def _items(reading: Reading) -> list[frozenset[str]]:
    """What each item has that no other has; nothing of a place and of a long text."""
    if len(reading.text.words) > LONGEST_LIST or _PLACE.fullmatch(reading.text.raw):
        return []
    contents = [Text(item).content for item in items(reading.text.raw)]
    if min(map(len, contents)) == 1 < len(contents[-1]):
        # The last word may belong to all: "Ana and Bruno Costa".
        contents[-1] = contents[-1][:-1]
    found = list(map(frozenset, contents))
    return [item.difference(*(other for other in found if other is not item)) for item in found]


def _has(item: frozenset[str], said: frozenset[str], asked: frozenset[str]) -> bool:
    wanted = item - asked
    return not wanted or any(_near(word, said) for word in wanted)


def _near(wanted: str, said: frozenset[str]) -> bool:
    return wanted in said or any(
        Indel.normalized_similarity(wanted, word) >= ALIKE for word in said if len(word) > 2
    )


def _only_mentions(golds: Golds, answer: Text) -> bool:
    """Whether each gold in the answer is there only as somebody beside the one it names: "Costa,
    the husband of Silva", "Kessel won against Pellworth"."""
    words = answer.words
    if _CUES.isdisjoint(words) or not COMPARING.isdisjoint(golds.question.words):
        return False
    held = [r.text.words for r in golds.full if r.text.spaced in answer.spaced]
    if any(len(gold) > LONGEST_MENTIONED for gold in held):
        return False
    starts = [at for gold in held for at in _starts(words, gold)]
    return bool(starts) and all(_beside(golds, answer, at) for at in starts)


_BESIDE = frozenset(["instead", "ahead", "front"])
_CUES = RIVALS | OUTDONE | RELATIVES | _BESIDE
_ARTICLES = frozenset(["the", "a", "an", "his", "her", "their", "its"])


def _starts(words: Sequence[str], gold: Sequence[str]) -> list[int]:
    size = len(gold)
    return [at for at in range(len(words) - size + 1) if list(words[at : at + size]) == list(gold)]


def _beside(golds: Golds, answer: Text, start: int) -> bool:
    """Whether a word before the gold says that it is another than the answer."""
    words = answer.words
    at = start - 1
    while at >= 0 and words[at] in _ARTICLES:
        at -= 1
    if at < 0:
        return False
    word, before = words[at], words[at - 1] if at else ""
    cue = (
        word in RIVALS
        or (word == "of" and before in RELATIVES | _BESIDE)
        or (word == "to" and before == "married")
        or (word == "by" and before in OUTDONE)
    )
    if not cue:
        return False
    named = answer.stems[:at] if word != "unlike" else answer.stems[start + 1 :]
    known = golds.question.stemset | golds.stems | FUNCTION_WORDS | _CUES | _STEMMED_CUES
    return any(each not in known for each in named)


_STEMMED_CUES = frozenset(map(stem, _CUES))
