"""The features of a question, its gold answers and an answer: forty numbers.

They measure only relations between the texts, not the words themselves, so a model over them has no
vocabulary. Shares are in [0, 1]; -1 means not applicable.
"""

from bisect import bisect
from collections.abc import Sequence

from rapidfuzz import fuzz, process
from rapidfuzz.distance import Indel

from hopscope.tracing.entailments.equivalence._english import DENIALS, FUNCTION_WORDS
from hopscope.tracing.entailments.equivalence.golds import MOST_INITIALS, Golds, Reading, weight
from hopscope.tracing.entailments.equivalence.words import Text, is_number

NAMES = (
    "contained",
    "contained_in_first_sentence",
    "says_less",
    "recall",
    "recall_mean",
    "recall_alternative",
    "recall_in_first_sentence",
    "recall_new",
    "precision",
    "precision_new",
    "overlap",
    "letters",
    "letters_mean",
    "letters_precision",
    "window",
    "fuzzy",
    "fuzzy_least",
    "fuzzy_alternative",
    "core_share",
    "core_fuzzy",
    "consensus",
    "items",
    "numbers_said",
    "numbers_near",
    "numbers_replaced",
    "names_other",
    "words_other",
    "words_other_share",
    "position",
    "denied",
    "initials",
    "refuses",
    "answer_words",
    "answer_new_words",
    "answer_echo",
    "golds",
    "gold_words",
    "gold_words_least",
    "gold_new_share",
    "asks_where",
    "asks_when",
)

RISING = frozenset(
    [
        "contained",
        "contained_in_first_sentence",
        "recall",
        "recall_alternative",
        "recall_new",
        "letters",
        "window",
        "fuzzy",
        "fuzzy_alternative",
        "core_fuzzy",
        "consensus",
        "initials",
    ]
)
"""Features whose increase never lowers the probability."""

MOST_WORDS = 1000
"""Further words of a text are not compared letter by letter with those of another."""
MOST_LETTERS = 2000
"""Nor are further characters."""
CLOSEST = 3
"""Aliases that are compared in detail: those with the largest share of words in the answer."""


def features(golds: Golds, answer: Text) -> list[float]:
    """The numbers named in `NAMES`, in that order."""
    said, first, asked = answer.stemset, answer.first, golds.question.stemset
    spaced, trigrams = answer.spaced, answer.trigrams
    full = golds.full
    recalls = [reading.recall(said) for reading in full]
    shared = golds.letters & trigrams
    letters = [len(r.text.trigrams & shared) / len(r.text.trigrams) for r in full]
    order = sorted(range(len(full)), key=recalls.__getitem__, reverse=True)
    close = [full[i] for i in order[:CLOSEST]]
    if len(full) > CLOSEST and (alike := full[letters.index(max(letters))]) not in close:
        close.append(alike)
    short = sorted([(r.recall(said), i) for i, r in enumerate(golds.shorter)], reverse=True)[:2]
    content = answer.content
    new = [stem for stem in content if stem not in asked]
    others = [stem for stem in new if stem not in golds.stems]
    content_weight = sum(map(weight, content)) or 1.0
    strange = [stem for stem in content if stem not in golds.stems]
    new_weight = sum(map(weight, new))
    recall = recalls[order[0]] if full else 0.0
    precision = 1 - sum(map(weight, others)) / new_weight if new_weight else -1.0
    known = max(0.0, precision)
    likeness = _Likeness(said, answer.stems)
    fuzzies = [_fuzzy(reading, likeness) for reading in close] or [(0.0, 0.0)]
    numbers = [len(found & answer.numbers) / len(found) for found in golds.numbers]
    positions = answer.positions(stem for stem, _ in close[0].new) if close else []
    return [
        float(any(reading.text.spaced in spaced for reading in full)),
        float(any(first.issuperset(reading.text.stems) for reading in full)),
        max([len(spaced) / len(r.text.spaced) for r in full if spaced in r.text.spaced] or [0.0]),
        recall,
        sum(recalls) / max(1, len(recalls)),
        short[0][0] if short else -1.0,
        max([r.recall(first) for r in close] or [0.0]) if first is not said else recall,
        max([reading.recall_new(said) for reading in full] or [-1.0]),
        1 - sum(map(weight, strange)) / content_weight,
        precision,
        2 * recall * known / (recall + known or 1.0),
        max(letters or [0.0]),
        sum(letters) / max(1, len(letters)),
        len(shared) / len(trigrams),
        max([_window(reading.text.spaced, spaced) for reading in close] or [0.0]),
        max([mean for mean, _ in fuzzies]),
        max([least for _, least in fuzzies]),
        max([_fuzzy(golds.shorter[i], likeness)[0] for _, i in short] or [-1.0]),
        golds.core_share,
        likeness.of(golds.core_word),
        sum([w for stem, w in golds.core if stem in said]) / golds.core_total,
        max([_items(found, said) for found in golds.lists] or [-1.0]),
        max(numbers or [-1.0]),
        _near(golds, answer) if golds.numbers and answer.numbers else -1.0,
        float(bool(close) and _number_replaced(close[0].text, golds, answer)),
        float(min(9, _names_other(golds, answer))),
        float(min(30, len(others))),
        len(others) / max(1, len(content)),
        min(positions) / len(answer.words) if positions else -1.0,
        _denied(golds, answer, positions),
        float(any(_initials(gold, answer) for gold in golds.beside(answer))),
        float(answer.refuses),
        float(min(200, len(answer.words))),
        float(min(50, len(new))),
        len(said & asked) / max(1, len(asked)),
        *golds.constants,
    ]


class _Likeness:
    """Similarity of words to the answer's most similar ones; numbers are equal or not."""

    __slots__ = ("_known", "_near", "_said")

    def __init__(self, said: frozenset[str], stems: Sequence[str]) -> None:
        self._said = said
        self._near = said if len(said) <= MOST_WORDS else frozenset(stems[:MOST_WORDS])
        self._known = {"": 0.0}

    def of(self, stem: str) -> float:
        """From 0 to 1; remembered."""
        if stem in self._said:
            return 1.0
        if stem not in self._known:
            found = None
            if not is_number(stem):
                found = process.extractOne(stem, self._near, scorer=Indel.normalized_similarity)
            self._known[stem] = float(found[1]) if found else 0.0
        return self._known[stem]


def _fuzzy(reading: Reading, likeness: _Likeness) -> tuple[float, float]:
    """Mean and least similarity of the reading's words to the answer's most similar ones."""
    wanted = (reading.new or reading.weights)[:MOST_WORDS]
    likes = [likeness.of(stem) for stem, _ in wanted]
    total = sum([w for _, w in wanted]) or 1.0
    mean = sum([w * like for (_, w), like in zip(wanted, likes, strict=True)]) / total
    return mean, min(likes, default=0.0)


def _window(wanted: str, text: str) -> float:
    """Similarity of the wanted text to the most similar stretch of the text."""
    if wanted in text:
        return 1.0
    wanted, text = wanted[:MOST_LETTERS], text[:MOST_LETTERS]
    compare = fuzz.ratio if len(wanted) > len(text) else fuzz.partial_ratio
    return compare(wanted, text) / 100


def _items(found: Sequence[Sequence[str]], said: frozenset[str]) -> float:
    """The mean share of a list's items in the answer."""
    return sum([sum([s in said for s in item]) / max(1, len(item)) for item in found]) / len(found)


def _near(golds: Golds, answer: Text) -> float:
    """The least relative distance between a gold number and one that only the answer has."""
    new = sorted(float(number) for number in answer.numbers - golds.question.numbers)
    wanted = {float(number) for numbers in golds.numbers for number in numbers}
    least = 1.0
    for number in wanted:
        above = bisect(new, number)
        for near in new[max(0, above - 1) : above + 1]:
            least = min(least, abs(number - near) / max(abs(number), 1.0))
    return least


def _denied(golds: Golds, answer: Text, positions: Sequence[int]) -> float:
    """Whether a denial stands shortly before the gold's words and is not the gold's own."""
    if not positions or not DENIALS.isdisjoint(golds.words):
        return 0.0
    start = min(positions)
    return float(not DENIALS.isdisjoint(answer.words[max(0, start - 3) : start]))


def _initials(one: Text, other: Text) -> bool:
    """Whether a text consists of the initials of the other, function words left out or not."""
    short, long = (one, other) if len(one.glued) < len(other.glued) else (other, one)
    if not 2 <= len(short.glued) <= MOST_INITIALS or len(long.words) < 2:
        return False
    content = [word[0] for word in long.words if word not in FUNCTION_WORDS]
    return short.glued in ("".join(content), long.initials)


def _number_replaced(gold: Text, golds: Golds, answer: Text) -> bool:
    """Whether the answer lacks a number of the gold and has one of neither gold nor question."""
    if answer.numbers.issuperset(gold.numbers):
        return False
    return bool(answer.numbers - golds.question.numbers - golds.words)


def _names_other(golds: Golds, answer: Text) -> int:
    """Names in the answer that neither the question nor a gold answer has."""
    if not answer.names:
        return 0
    return len(set(answer.names).difference(golds.question.words) - golds.words - FUNCTION_WORDS)
