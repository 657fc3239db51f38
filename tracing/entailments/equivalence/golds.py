"""The gold answers of a question, read once for all answers to it."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from hopscope.tracing.entailments.equivalence._english import (
    DECADES,
    FUNCTION_WORDS,
    MONTHS,
    WHEN,
    WHERE,
)
from hopscope.tracing.entailments.equivalence._variants import FIRST_NAMES, PLACES
from hopscope.tracing.entailments.equivalence.quantities import Quantity, quantities
from hopscope.tracing.entailments.equivalence.times import Time, coarser, only_times, times
from hopscope.tracing.entailments.equivalence.words import (
    SHORTEST_SOUND,
    Text,
    alternatives,
    is_number,
    items,
    sound,
)

MOST_GOLDS = 200
"""Further aliases, and further ways to read them, are left out."""
MOST_INITIALS = 6
MOST_NAMES = 50
"""Further words of a gold are no first names."""
_TIME_WORDS = MONTHS | DECADES.keys()


@lru_cache(maxsize=1 << 16)
def weight(stem: str) -> float:
    """The weight of a word: long words and numbers are rarer than short words."""
    if stem in FUNCTION_WORDS:
        return 0.1
    return 1.0 if is_number(stem) else min(1.0, 0.25 + 0.12 * len(stem))


class Reading:
    """One reading of a gold answer, and its words that the question lacks."""

    __slots__ = ("new", "new_total", "text", "total", "weights")

    def __init__(self, text: Text, asked: frozenset[str]) -> None:
        self.text = text
        weights = [(stem, weight(stem)) for stem in dict.fromkeys(text.stems)]
        self.weights = [(stem, w * (0.25 if stem in asked else 1.0)) for stem, w in weights]
        self.total = sum([w for _, w in self.weights]) or 1.0
        self.new = [(s, w) for s, w in weights if s not in asked and s not in FUNCTION_WORDS]
        self.new_total = sum([w for _, w in self.new])

    def recall(self, said: frozenset[str]) -> float:
        """The weighted share of its words in the answer."""
        return sum([w for stem, w in self.weights if stem in said]) / self.total

    def recall_new(self, said: frozenset[str]) -> float:
        """The same for the words that the question does not contain."""
        if not self.new:
            return -1.0
        return sum([w for stem, w in self.new if stem in said]) / self.new_total


class GoldTime(NamedTuple):
    """A gold that is a time."""

    time: Time
    words: list[str]
    """Of the gold."""
    spans: bool
    """Whether it is the time between two years."""


class Golds:
    """A question with its gold answers, read once for all answers to it."""

    def __init__(self, question: Text, golds: Sequence[Text]) -> None:
        self.question = question
        self.raw = [gold.raw for gold in golds]
        asked = question.stemset
        texts = [gold for gold in golds if gold.words][:MOST_GOLDS]
        self.full = [Reading(text, asked) for text in texts]
        shorter: dict[str, Text] = {}
        for text in texts:
            for alternative in alternatives(text.raw):
                found = Text(alternative)
                if found.content:
                    shorter.setdefault(found.glued, found)
        for text in texts:
            shorter.pop(text.glued, None)
        self.shorter = [Reading(text, asked) for text in list(shorter.values())[:MOST_GOLDS]]
        self.stems = frozenset(chain.from_iterable(text.stems for text in texts))
        self.words = frozenset(chain.from_iterable(text.words for text in texts))
        self.letters = frozenset(chain.from_iterable(text.trigrams for text in texts))
        counted: dict[str, int] = {}
        for reading in self.full:
            for stem, _ in reading.new:
                counted[stem] = counted.get(stem, 0) + 1
        self.core = [(stem, n * weight(stem)) for stem, n in counted.items()]
        self.core_total = sum([w for _, w in self.core]) or 1.0
        self.core_word = max(self.core, key=itemgetter(1), default=("", 0.0))[0]
        listed = [each for text in texts if len(each := items(text.raw)) > 1][:5]
        self.lists = [[Text(item).content for item in each] for each in listed]
        self.numbers = [text.numbers for text in texts if text.numbers]
        lengths = [len(text.words) for text in texts] or [0]
        lower = question.raw.casefold()
        self.constants = (
            float(len(texts)),
            sum(lengths) / len(lengths),
            float(min(lengths)),
            max([reading.new_total / reading.total for reading in self.full], default=0.0),
            float(bool(WHERE.search(lower))),
            float(bool(WHEN.search(lower))),
        )
        self.core_share = counted.get(self.core_word, 0) / max(1, len(texts))
        self.spaced = frozenset([text.spaced for text in texts])
        self.bare = [text for text in texts if len(text.words) == 1]
        """Golds of one word."""
        self._texts = texts
        self._brief = [text for text in texts if len(text.glued) <= MOST_INITIALS]

    def beside(self, answer: Text) -> list[Text]:
        """The golds that may be initials of the answer or have it as initials."""
        return self._texts if len(answer.glued) <= MOST_INITIALS else self._brief

    @cached_property
    def times(self) -> list["GoldTime"]:
        """The finest of the times of golds that are nothing but one time, or two years, which make
        one span."""
        found = []
        for text in self._texts:
            if not text.numbers and _TIME_WORDS.isdisjoint(text.words):
                continue
            said = times(text.words)
            if only_times(text.words, said) and (time := _one(said)):
                found.append(GoldTime(time, text.words, len(said) > 1))
        return [each for each in found if not any(coarser(each.time, o.time) for o in found)]

    @cached_property
    def quantities(self) -> list[list[Quantity]]:
        """The numbers of each gold that has some, with signs and units."""
        return [quantities(text) for text in self._texts if text.numbers]

    @cached_property
    def all_numbers(self) -> frozenset[str]:
        """The numbers of all golds."""
        return frozenset(chain.from_iterable(self.numbers))

    @cached_property
    def measured(self) -> bool:
        """Whether a number of a gold has a sign or a unit."""
        return any(each.negative or each.unit for gold in self.quantities for each in gold)

    @cached_property
    def first_names(self) -> dict[str, list[tuple[str, Text]]]:
        """Forms of first names in the golds: the word of the gold for each, and that gold."""
        found: dict[str, list[tuple[str, Text]]] = {}
        for text in self._texts:
            for word in dict.fromkeys(text.words[:MOST_NAMES] if len(text.words) > 1 else ()):
                for form in FIRST_NAMES.get(word, frozenset()) - {word}:
                    found.setdefault(form, []).append((word, text))
        return found

    @cached_property
    def places(self) -> list[tuple[str, str]]:
        """Other names of places in the golds, each with the name that is there, between spaces."""
        names = [text.spaced.strip().removeprefix("the ") for text in self._texts]
        return [
            (f" {form} ", f" {name} ")
            for name in dict.fromkeys(names)
            for form in sorted(PLACES.get(name, frozenset()) - {name}, key=lambda n: (-len(n), n))
        ]

    @cached_property
    def sounds(self) -> dict[str, str]:
        """The golds' longer words by their sound."""
        words = chain.from_iterable(text.words for text in self._texts)
        return {sound(word): word for word in words if len(word) >= SHORTEST_SOUND}

    @cached_property
    def initialled(self) -> list[Text]:
        """The golds that may be names of several words."""
        return [text for text in self._texts if 2 <= len(text.words) <= MOST_INITIALS]


def _one(said: Sequence[Time]) -> Time | None:
    """The only time, or the span from the first to the last of two."""
    if len(said) == 2 and all(time.dated for time in said) and said[0].low < said[1].low:
        return said[0]._replace(high=said[1].high, end=said[1].end)
    return said[0] if len(said) == 1 else None
