"""How answers are read before they are compared: words, stems, numbers, initials, alternatives.

One text in one form, whichever way it was written: "Edward VII" and "Edward the Seventh" hold the
number 7, "£50m" and "50 million" the number 50000000, "Lomé" and "Lome" the same letters. A gold
answer is read several ways, because people write remarks into them: "(Robert) Boyle", "Prince
William (accept Duke of Cambridge)", "Puff, the magic dragon".
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock

import Stemmer

from hopscope.tracing.entailments._english import FUNCTION_WORDS, NUMBERS, NUMERIC, ROMAN, SCALES

LONGEST_NUMBER = 15
"""Characters; longer rows of digits are names of something."""

_SIGNS = str.maketrans(
    {"&": " and ", "%": " percent ", "'": "", "\u2019": "", "\u2018": "", "`": ""}
)
_NUMERAL = re.compile(r"(?<=[A-Za-z] )(?:[IVX]{2,5}|[IVX](?=[.,;:)\n]|$|\s+of\b))(?!\w)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_WORD = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+")
_SENTENCE = re.compile(r"(?<=[\w\"\u201d)])[.!?](?=\s+[A-Z\"\u201c(])|\n")
_CAPITAL = re.compile(r"(?<![.!?:\n]\s)(?<!^)(?<![\"\u201c'(])\b[A-Z][^\W\d_]+")
_MONEY = re.compile(r"([$\u00a3\u20ac]\s?\d+(?:\.\d+)?)\s?(mn?|bn|k)\b")
_SCALE = {"m": " million", "mn": " million", "bn": " billion", "k": " thousand"}
_ASIDE = re.compile(r"\s*[(\[]([^()\[\]]*)[)\]]?\s*")
_CHOICE = re.compile(r"(?i)\s*(?:;|\bor\b|\baccept\b|\balso\b|\baka\b|:|\berrata\b)\s*")
_REMARK = re.compile(r",\s+(?=(?:who|which|where|in|the|from|at|on|as|by|an?)\b)|\s+(?=by [A-Z])")
_ITEM = re.compile(r"(?i)\s*(?:,|;|&|\band\b|\bplus\b)\s*")

_stemmer = Stemmer.Stemmer("english")
_stemmer_lock = Lock()


class Text:
    """One text, read. What only some comparisons need is made when it is first asked for."""

    __slots__ = ("_content", "_first", "_names", "_trigrams", "glued", "numbers", "raw", "spaced",
                 "stems", "stemset", "words")  # fmt: skip

    def __init__(self, text: str) -> None:
        self.raw = text
        self.words = _words(text)
        self.stems = [stem(word) for word in self.words]
        self.stemset = frozenset(self.stems)
        self.spaced = f" {' '.join(self.words)} "
        self.glued = "".join(self.words)
        self.numbers = frozenset(filter(is_number, self.words))
        self._content: list[str] | None = None
        self._first: frozenset[str] | None = None
        self._names: list[str] | None = None
        self._trigrams: frozenset[str] | None = None

    @property
    def initials(self) -> str:
        """The first letters of all words."""
        return "".join([word[0] for word in self.words])

    @property
    def trigrams(self) -> frozenset[str]:
        """Runs of three letters across the words; of a shorter text the text itself."""
        if self._trigrams is None:
            letters = self.glued
            triples = map("".join, zip(letters, letters[1:], letters[2:], strict=False))
            self._trigrams = frozenset(triples if len(letters) > 2 else [letters])
        return self._trigrams

    @property
    def content(self) -> list[str]:
        """Stems that carry meaning, in order."""
        if self._content is None:
            pairs = zip(self.words, self.stems, strict=True)
            self._content = [stem for word, stem in pairs if word not in FUNCTION_WORDS]
        return self._content

    @property
    def first(self) -> frozenset[str]:
        """Stems of the first sentence."""
        if self._first is None:
            found = _SENTENCE.search(self.raw, 12)
            self._first = self.stemset
            if found:
                self._first = frozenset(self.stems[: len(_words(self.raw[: found.start()]))])
        return self._first

    @property
    def names(self) -> list[str]:
        """Words with a capital that does not begin a sentence, folded."""
        if self._names is None:
            self._names = _words(" ; ".join(_CAPITAL.findall(self.raw)))
        return self._names


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of a folded word."""
    with _stemmer_lock:
        return str(_stemmer.stemWord(word))


def is_number(word: str) -> bool:
    """Whether a folded word is a number in digits, such as 1951 or 3.5."""
    return word[0] <= "9" and len(word) <= LONGEST_NUMBER


def _words(text: str) -> list[str]:
    if not text.isascii():
        folded = unicodedata.normalize("NFKD", text)
        text = "".join([c for c in folded if not unicodedata.combining(c)])
    text = _NUMERAL.sub(lambda m: str(ROMAN.get(m[0], m[0])), text)
    text = _THOUSANDS.sub("", text.casefold().translate(_SIGNS))
    text = _MONEY.sub(lambda m: m[1] + _SCALE[m[2]], text)
    found = _WORD.findall(text)
    if NUMERIC.isdisjoint(found):
        return found
    return _with_numbers(found)


def _with_numbers(words: Sequence[str]) -> list[str]:
    """Number words as digits: "forty three" is 43, "2.5 million" 2500000."""
    found: list[str] = []
    tens = 0
    for word in words:
        number = NUMBERS.get(word)
        if word in SCALES and found and is_number(found[-1]):
            found[-1] = f"{float(found[-1]) * SCALES[word]:.12g}"
            tens = 0
        elif number is None:
            found.append(word)
            tens = 0
        elif tens and 0 < number < 10:
            found[-1] = str(tens + number)
            tens = 0
        else:
            found.append(str(number))
            tens = number if 20 <= number <= 90 else 0
    return found


def alternatives(gold: str) -> list[str]:
    """Shorter ways to read a gold answer, without its remarks and one choice at a time."""
    found: list[str] = []
    plain = _ASIDE.sub(" ", gold).strip()
    asides = [aside for aside in _ASIDE.findall(gold) if aside.strip()]
    for part in [plain, *_CHOICE.split(plain), *asides]:
        for reading in (*_CHOICE.split(part), _REMARK.split(part, 1)[0]):
            reading = reading.strip(" .,")
            if reading and reading != gold and reading not in found:
                found.append(reading)
    return found


def items(gold: str) -> list[str]:
    """What a gold answer lists: "Chile and Argentina" is two items; one if it lists nothing."""
    found = [item for item in _ITEM.split(_ASIDE.sub(" ", gold)) if item.strip()]
    return found if len(found) > 1 else [gold]
