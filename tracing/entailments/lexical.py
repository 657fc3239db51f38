"""Entailment between short answers by their words: equality and containment. Deterministic.

For names, dates, numbers and yes/no, as in the embedded world. It knows no synonyms, and a
sentence that mentions the gold in passing entails it. The first case that applies gives the
probabilities (premise against hypothesis):

| case                                                            | ent. | neutral | contr. |
|-----------------------------------------------------------------|------|---------|--------|
| either side has no words                                        | 0    | 1       | 0      |
| both are yes or no ("No, they are not" is no): the same / other | 1/0  | 0       | 0/1    |
| one is yes or no, the other not                                 | 0    | 1       | 0      |
| the same words in the same order                                | 1    | 0       | 0      |
| the premise denies (not, never, neither, nor) and only it does  | 0    | 0       | 1      |
| the premise contains the hypothesis as whole words              | .9   | .1      | 0      |
| the hypothesis contains the premise, which says less            | 0    | 1       | 0      |
| they differ in numbers only                                     | 0    | 0       | 1      |
| some words in common                                            | 0    | .5      | .5     |
| no word in common                                               | 0    | 0       | 1      |

Words: lower case, accents folded, no articles, "U.S." as "us", 1,000 as 1000, "two" as 2; 3.5 is
one word. A number is contained only with its own scale: "5 million" and "5%" do not contain "5".
"""

import re
import unicodedata
from collections.abc import Sequence

from hopscope.runtime.ports import Entailment, Probabilities, Statement

_ENTAILED = Probabilities(1.0, 0.0, 0.0)
_CONTAINED = Probabilities(0.9, 0.1, 0.0)
_NEUTRAL = Probabilities(0.0, 1.0, 0.0)
_UNCLEAR = Probabilities(0.0, 0.5, 0.5)
_CONTRADICTED = Probabilities(0.0, 0.0, 1.0)

_ARTICLES = frozenset({"a", "an", "the"})
_DENIALS = frozenset({"not", "never", "neither", "nor", "cannot"})
_COUNTS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_COUNTS)}
_SCALES = frozenset({"hundred", "thousand", "million", "billion", "trillion", "percent", "%"})
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_POLAR = re.compile(
    r"\W*(?:(yes)\b|(no)(?:\W*$|\s*[,.;:!-]|\s+(?:it|they|he|she|both|these|only|neither)\b))",
    re.IGNORECASE,
)


class Lexical:
    """Judges by words alone and ignores the question."""

    name = "lexical"

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement, by the table above."""
        known = {pair: _relate(*pair) for pair in {(s.premise, s.hypothesis) for s in statements}}
        return [known[s.premise, s.hypothesis] for s in statements]


def build() -> Entailment:
    """The embedded entailment: no model, no download."""
    return Lexical()


def words(answer: str) -> list[str]:
    """The words of an answer, normalised for comparison."""
    folded = unicodedata.normalize("NFKD", answer.casefold())
    text = "".join(c for c in folded if not unicodedata.combining(c))
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    text = re.sub(r"n't\b", " not", text)
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    text = re.sub(r"(?<=[^\W\d])[.'](?=[^\W\d]|\W|$)", "", text)
    found = re.findall(r"\d+(?:\.\d+)?(?!\w)|%|\w+", text)
    return [_NUMBER_WORDS.get(word, word) for word in found if word not in _ARTICLES]


def _relate(premise: str, hypothesis: str) -> Probabilities:
    said, asked = words(premise), words(hypothesis)
    if not said or not asked:
        same = premise.strip().casefold() == hypothesis.strip().casefold() != ""
        return _ENTAILED if same else _NEUTRAL
    polarities = polarity(premise), polarity(hypothesis)
    if all(polarities):
        return _ENTAILED if polarities[0] == polarities[1] else _CONTRADICTED
    if any(polarities):
        return _NEUTRAL
    if said == asked:
        return _ENTAILED
    if _DENIALS & set(said) and not _DENIALS & set(asked):
        return _CONTRADICTED
    if _within(asked, said):
        return _CONTAINED
    if _within(said, asked):
        return _NEUTRAL
    if _without_numbers(said) == _without_numbers(asked) or not set(said) & set(asked):
        return _CONTRADICTED
    return _UNCLEAR


def polarity(answer: str) -> str | None:
    """ "yes" or "no" if the answer begins with it, else None."""
    found = _POLAR.match(answer)
    return (found[1] or found[2]).lower() if found else None


def _within(part: list[str], whole: list[str]) -> bool:
    """Whether `whole` contains `part` as consecutive words, each number with its scale."""
    return _spelled(part) in _spelled(whole)


def _spelled(answer: list[str]) -> str:
    """The words between spaces; "~", which no word contains, marks a number before a scale."""
    following = [*answer[1:], ""]
    signs = (
        "~" if _NUMBER.fullmatch(word) and after in _SCALES else ""
        for word, after in zip(answer, following, strict=True)
    )
    return "".join([" ", *(f"{word}{sign} " for word, sign in zip(answer, signs, strict=True))])


def _without_numbers(answer: list[str]) -> list[str]:
    return [word for word in answer if not _NUMBER.fullmatch(word)]
