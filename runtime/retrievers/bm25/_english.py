"""Cut English text into terms as Lucene's EnglishAnalyzer does.

Words by Unicode's rules (UAX #29, as far as it matters here: "o'neil", "u.s.a" and "10,000" are
one word, each Chinese character is one), lower case, possessive 's off, Lucene's 33 stop words
out, then Porter's stemmer in the form of his own later code, which Lucene ships.
"""

import re
from functools import lru_cache
from threading import Lock

import Stemmer

TOKENIZER = "lucene-english-1"
"""Version in an index's manifest; increase it whenever a text could give other terms."""

_LUCENE_STOPS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with"
)
STOP_WORDS = frozenset(_LUCENE_STOPS.split())

# Characters of words that `\w` does not match: accents, Hebrew, Arabic, Indic, Thai.
_MARKS = (
    "\u0300-\u036f \u0483-\u0487 \u0591-\u05bd \u0610-\u061a \u064b-\u065f \u0670 \u06d6-\u06dc"
    " \u0900-\u0903 \u093a-\u094f \u0962\u0963 \u0981-\u0983 \u09bc-\u09cd \u0a01-\u0a03"
    " \u0a3c-\u0a4d \u0a81-\u0a83 \u0abc-\u0acd \u0b01-\u0b03 \u0b3c-\u0b57 \u0b82 \u0bbe-\u0bcd"
    " \u0c00-\u0c04 \u0c3e-\u0c4d \u0c81-\u0c83 \u0cbc-\u0ccd \u0d00-\u0d03 \u0d3b-\u0d4d"
    " \u0e31 \u0e34-\u0e3a \u0e47-\u0e4e"
).replace(" ", "")
_SINGLE = "\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_PART = rf"(?:[^\W{_SINGLE}]|[{_MARKS}])+"
_ASCII_WORD = re.compile(r"\w+(?:(?:(?<=[a-z])['.:](?=[a-z])|(?<=\d)[.,;'](?=\d))\w+)*", re.ASCII)
_WORD = re.compile(
    rf"[{_SINGLE}]|{_PART}(?:(?:(?<=[^\W\d_])['\u2018\u2019.:\xb7](?=[^\W\d_{_SINGLE}])"
    rf"|(?<=\d)[.,;'\u2018\u2019](?=\d)){_PART})*"
)
_MEASURED = re.compile(r"[^aeiou]*[aeiouy]+[^aeiou]")
"""A stem of Porter's measure m > 0."""

_porter = Stemmer.Stemmer("porter")
_porter_lock = Lock()


def words(text: str) -> list[str]:
    """The words of a text in lower case, in order."""
    lowered = text.lower()
    return (_ASCII_WORD if lowered.isascii() else _WORD).findall(lowered)


@lru_cache(maxsize=1 << 16)
def term(word: str) -> str:
    """The term a lower-case word is indexed under; empty for a stop word."""
    word = word[:-2] if word.endswith(("'s", "\u2019s")) else word
    if word in STOP_WORDS:
        return ""
    if len(word) <= 2:
        return word
    stem = _stem(word)
    # Where Porter departed from his paper: -logi to -log, -bli to -ble.
    if stem.endswith("logi") and _MEASURED.match(stem[:-4]):
        return stem[:-1]
    if stem.endswith("bli") and _MEASURED.match(stem[:-3]):
        return _stem(stem[:-1] + "e")
    return stem


def terms(text: str) -> list[str]:
    """The terms of a text, in order and with repetitions."""
    return [stem for word in words(text) if (stem := term(word))]


def _stem(word: str) -> str:
    with _porter_lock:
        return str(_porter.stemWord(word))
