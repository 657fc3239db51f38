"""Normalisation of answers for comparison: words, stems, numbers, initials, alternatives.

Different spellings get one form: "Edward VII" and "Edward the Seventh" contain the number 7, "£50m"
and "50 million" the number 50000000, "36.0" and "36" the number 36, "1632-53" the numbers 1632 and
1653, "Lomé" and "Lome" the same letters. Marks of footnotes are left out: "1877[1]". A gold answer
has several readings, because people write remarks into them: "(Robert) Boyle", "Prince William
(accept Duke of Cambridge)", "Puff, the magic dragon".
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from threading import Lock

import Stemmer

from hopscope.tracing.entailments.equivalence._english import (
    FUNCTION_WORDS,
    NUMBERS,
    NUMERIC,
    REFUSAL,
    REFUSING,
    ROMAN,
    SCALES,
    UNITS,
)

SHORTEST_SOUND = 5
"""Letters; shorter words that sound alike are often different ones."""
_SOUNDS = (
    ("tsch", "c"), ("tch", "c"), ("sch", "s"), ("sh", "s"), ("kh", "k"), ("ch", "k"), ("ck", "k"),
    ("gh", "g"), ("ph", "f"), ("th", "t"), ("q", "k"), ("x", "ks"), ("w", "v"), ("y", "i"),
    ("j", "i"), ("ae", "e"), ("oe", "o"), ("ue", "u"), ("ou", "u"),
)  # fmt: skip
_DOUBLED = re.compile(r"(.)\1+")
LONGEST_NUMBER = 15
"""Characters; longer rows of digits are names of something."""

_APOSTROPHES = "'`\u2018\u2019"
# These begin with the wanted text and look back from there: matches are rare, so a quick failure
# matters most.
_NUMERAL = re.compile(r"[IVX](?<=[A-Za-z] .)(?:[IVX]{1,4}|(?=[.,;:)\n]|$|\s+of\b))(?!\w)")
_SIGN = re.compile(f"[&%{_APOSTROPHES}]")
_SIGNS = {"&": " and ", "%": " percent "} | dict.fromkeys(_APOSTROPHES, "")
_THOUSANDS = re.compile(r",(?<=\d,)(?=\d{3}(?!\d))")
_MONEY = re.compile(r"[$\u00a3\u20ac]\s?(\d+(?:\.\d+)?)\s?(mn?|bn|k)\b")
_SCALE = {"m": " million", "mn": " million", "bn": " billion", "k": " thousand"}
_FOOTNOTE = re.compile(r"(?<=\S)\[\^?\d{1,2}\^?\]")
_RAISED = re.compile(r"(?<=\w)[\u00b9\u00b2\u00b3\u2070-\u2079]+")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_RANGE = re.compile(
    r"(?<![\d.\u2013\u2212-])(\d\d)(\d\d)\s?[\u2013\u2212-]\s?(\d\d)(?![\d\u2013\u2212-]|\.\d)"
)
"""Two years, of the second only the last two digits."""
_SENTENCE = re.compile(r"[.!?](?<=[\w\"\u201d)].)(?=\s+[A-Z\"\u201c(])|\n")
_CAPITAL = re.compile(r"[A-Z](?<!\w.)(?<!^.)(?<![.!?:\n]\s.)(?<![\"\u201c'(].)[^\W\d_]+")
_DIGIT = re.compile(r"[0-9]")
_WORD = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+")
_LETTERS = bytes(code if chr(code).isalpha() else ord(" ") for code in range(128)) + bytes(128)
"""Replacements of ASCII characters in texts without numbers, so that spaces separate words."""
_DIVIDED = re.compile(r"(?i)[(\[;:,&]|\b(?:or|accept|also|aka|errata|by|and|plus)\b")
"""Without any of these a gold answer is read one way only."""
# The space around these is stripped afterwards: an expression that begins with `\s*` goes through
# every row of spaces once for each of them.
_ASIDE = re.compile(r"[(\[][^()\[\]]*[)\]]?")
_CHOICE = re.compile(r"(?i);|\bor\b|\baccept\b|\balso\b|\baka\b|:|\berrata\b")
_REMARK = re.compile(
    r",\s++(?=(?:who|which|where|in|the|from|at|on|as|by|an?)\b)|(?<!\s)\s++(?=by [A-Z])"
)
_ITEM = re.compile(r"(?i),|;|&|\band\b|\bplus\b")

_stemmer = Stemmer.Stemmer("english")
_stemmer_lock = Lock()


class Text:
    """One normalised text. Properties for only some comparisons are computed at first use."""

    __slots__ = ("_first", "_names", "_places", "_refuses", "_trigrams", "content", "glued",
                 "numbers", "raw", "spaced", "stems", "stemset", "words")  # fmt: skip

    def __init__(self, text: str, words: list[str] | None = None) -> None:
        """
        Args:
            words: the words to compare instead of the text's own.
        """
        self.raw = text
        self.words = words = _words(text) if words is None else words
        self.stems = stems = list(map(stem, words))
        self.stemset = frozenset(stems)
        pairs = zip(words, stems, strict=True)
        self.content = [stem for word, stem in pairs if word not in FUNCTION_WORDS]
        """Stems that carry meaning, in order."""
        self.spaced = f" {' '.join(words)} "
        self.glued = "".join(words)
        self.numbers = frozenset(filter(is_number, words))
        self._first: frozenset[str] | None = None
        self._names: list[str] | None = None
        self._places: dict[str, int] | None = None
        self._refuses: bool | None = None
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

    def positions(self, stems: Iterable[str]) -> list[int]:
        """The first position of each of the stems in the text; absent stems are left out."""
        if self._places is None:
            places = range(len(self.stems) - 1, -1, -1)
            self._places = dict(zip(reversed(self.stems), places, strict=True))
        return [self._places[stem] for stem in stems if stem in self._places]

    @property
    def refuses(self) -> bool:
        """Whether it is a refusal."""
        if self._refuses is None:
            # The expression is slow and rarely needed.
            hinted = not REFUSING.isdisjoint(self.words)
            self._refuses = hinted and bool(REFUSAL.search(self.raw))
        return self._refuses


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of a folded word."""
    with _stemmer_lock:
        return str(_stemmer.stemWord(word))


@lru_cache(maxsize=1 << 16)
def sound(word: str) -> str:
    """A folded word in a spelling that transliterations share: "gorschkow" and "gorshkov"."""
    for letters, one in _SOUNDS:
        word = word.replace(letters, one)
    return _DOUBLED.sub(r"\1", word)


def is_number(word: str) -> bool:
    """Whether a folded word is a number in digits, such as 1951 or 3.5."""
    return word[0] <= "9" and len(word) <= LONGEST_NUMBER


def _words(text: str) -> list[str]:
    if "[" in text:
        text = _FOOTNOTE.sub("", text)
    if not text.isascii():
        folded = unicodedata.normalize("NFKD", _RAISED.sub("", text))
        text = "".join([c for c in folded if not unicodedata.combining(c)])
    text = _NUMERAL.sub(_digits, text).casefold()
    text = _SIGN.sub(_sign, text)
    if _DIGIT.search(text) or not text.isascii():
        text = _ORDINAL.sub("", _MONEY.sub(_scaled, _THOUSANDS.sub("", text)))
        found = list(map(_number, _WORD.findall(_RANGE.sub(_years, text))))
        if not UNITS.keys().isdisjoint(found):
            found = _with_units(found)
    else:
        found = text.encode().translate(_LETTERS).decode().split()
    return found if NUMERIC.isdisjoint(found) else _with_numbers(found)


def _digits(numeral: re.Match[str]) -> str:
    return str(ROMAN.get(numeral[0], numeral[0]))


def _sign(sign: re.Match[str]) -> str:
    return _SIGNS[sign[0]]


def _scaled(amount: re.Match[str]) -> str:
    return amount[1] + _SCALE[amount[2]]


def _years(range_: re.Match[str]) -> str:
    century, first, last = range_.groups()
    return f"{century}{first} {century}{last}" if first < last else range_[0]


def _number(word: str) -> str:
    """A number without zeros that say nothing: "36.0", "3.50", "05"."""
    if "." in word:
        return word.rstrip("0").rstrip(".")
    return word[1] if len(word) == 2 and word[0] == "0" else word


def _with_units(words: Sequence[str]) -> list[str]:
    """Units after a number in their short form: "12 metres" and "12 m"."""
    pairs = zip(words, ["", *words], strict=False)
    return [UNITS.get(w, w) if before and is_number(before) else w for w, before in pairs]


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
    if not _DIVIDED.search(gold):
        return []
    found: dict[str, None] = {}
    plain = " ".join(_parted(_ASIDE, gold)).strip()
    asides = [aside[1:].rstrip(")]") for aside in _ASIDE.findall(gold)]
    for part in [plain, *_parted(_CHOICE, plain), *filter(str.strip, asides)]:
        for reading in (*_parted(_CHOICE, part), _REMARK.split(part, 1)[0]):
            reading = reading.strip(" .,")
            if reading and reading != gold:
                found[reading] = None
    return list(found)


def items(gold: str) -> list[str]:
    """The items of a gold answer: two in "Chile and Argentina"; one if it is no list."""
    if not _DIVIDED.search(gold):
        return [gold]
    found = [item for item in _parted(_ITEM, " ".join(_parted(_ASIDE, gold))) if item.strip()]
    return found if len(found) > 1 else [gold]


def _parted(dividing: re.Pattern[str], text: str) -> list[str]:
    """The pieces of a text between separators, stripped."""
    pieces = dividing.split(text)
    last = len(pieces) - 1
    without = [piece.lstrip() if number else piece for number, piece in enumerate(pieces)]
    return [p.rstrip() if number < last else p for number, p in enumerate(without)]
