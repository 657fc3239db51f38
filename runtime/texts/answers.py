"""Normalised answers and the string metrics over them: equality, token F1, containment, ROUGE-L.

Every score depends on how answers are normalised, so the normaliser has a name that goes into
the record of the score. All metrics take the best over the gold aliases.

Source: SQuAD (Rajpurkar et al. 2016), whose normalisation and token F1 these are; the guard for
yes/no in F1 follows FLARE (Jiang et al. 2023) and FlashRAG.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from rapidfuzz.distance import Indel

Normaliser = Literal["squad", "spaced"]
"""`squad` deletes punctuation, which glues words ("U.S." becomes "us"); `spaced` puts a space in
its place (Power of Noise, Cuconasu et al. 2024)."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_GLUE = str.maketrans("", "", string.punctuation)
_SPACE = str.maketrans(string.punctuation, " " * len(string.punctuation))
_WORD = re.compile(r"\w+")
_CLOSED = frozenset({"yes", "no", "noanswer"})


def normalise(answer: str, normaliser: Normaliser = "squad") -> str:
    """Lower case, no ASCII punctuation, no articles, single spaces; may be empty ("The")."""
    return _normalise(answer, normaliser)


@lru_cache(maxsize=1024)  # an answer is compared with each gold, by each metric
def _normalise(answer: str, normaliser: Normaliser) -> str:
    return " ".join(_without_articles(answer, normaliser).split())


@lru_cache(maxsize=2)  # one batch after the other is compared, by each metric
def normalise_all(answers: tuple[str, ...], normaliser: Normaliser = "squad") -> tuple[str, ...]:
    """`normalise` each; of thousands of texts in a fifth of the time."""
    lines = "\n".join([answer.replace("\n", " ") for answer in answers])
    plain = _without_articles(lines, normaliser).split("\n")
    return tuple([" ".join(line.split()) for line in plain]) if answers else ()


def _without_articles(text: str, normaliser: Normaliser) -> str:
    return _ARTICLES.sub(" ", text.lower().translate(_GLUE if normaliser == "squad" else _SPACE))


def exact_match(answer: str, golds: Sequence[str], normaliser: Normaliser = "squad") -> float:
    """1 if the normalised answer equals any normalised gold, else 0. An empty answer scores 0."""
    prediction = normalise(answer, normaliser)
    return float(
        bool(prediction) and any(prediction == normalise(gold, normaliser) for gold in golds)
    )


def token_f1(answer: str, golds: Sequence[str], normaliser: Normaliser = "squad") -> float:
    """Best F1 of the token bags, in [0, 1]; yes, no and noanswer earn nothing unless equal."""
    prediction = normalise(answer, normaliser)
    return max((bag_f1(prediction, normalise(gold, normaliser)) for gold in golds), default=0.0)


def bag_f1(prediction: str, gold: str) -> float:
    """F1 of the words of two normalised texts; see `token_f1`."""
    if prediction != gold and (prediction in _CLOSED or gold in _CLOSED):
        return 0.0
    if prediction == gold:
        return float(bool(gold))
    one, other = prediction.split(), gold.split()
    words, others = set(one), set(other)
    common = len(words & others)
    if common and (len(words) < len(one) or len(others) < len(other)):  # words occur repeatedly
        common = sum((Counter(one) & Counter(other)).values())
    return 2 * common / (len(one) + len(other)) if common else 0.0


def contains(text: str, gold: str, normaliser: Normaliser = "squad") -> bool:
    """Whether the normalised gold stands in the normalised text as whole words.

    A gold that normalises to nothing is contained in nothing.
    """
    return holds(normalise(text, normaliser), normalise(gold, normaliser))


def holds(text: str, phrase: str) -> bool:
    """`contains` of two normalised texts."""
    return bool(phrase) and f" {phrase} " in f" {text} "


def accuracy(answer: str, golds: Sequence[str], normaliser: Normaliser = "squad") -> float:
    """1 if any normalised gold is a substring of the normalised answer, inside words too, else 0.

    This is FlashRAG's `acc` and the papers' "lexical match"; `contains` respects words.
    """
    prediction = normalise(answer, normaliser)
    phrases = (normalise(gold, normaliser) for gold in golds)
    return float(any(gold and gold in prediction for gold in phrases))


def distinct(golds: Sequence[str], normaliser: Normaliser = "squad") -> tuple[str, ...]:
    """Gold aliases without blanks and without repetitions up to normalisation, in canonical order.

    Neither the order of the aliases nor a repeated one changes the result. Aliases that normalise
    to nothing ("The The") are told apart by their text.
    """
    aliases: dict[str, str] = {}
    for gold in sorted(golds):
        if gold.strip():
            aliases.setdefault(normalise(gold, normaliser) or gold.strip().casefold(), gold)
    return tuple(aliases.values())


def rouge_l(one: str, other: str) -> float:
    """ROUGE-L: F1 in [0, 1] of the longest common subsequence of words, 2·LCS / (m + n), without
    case and punctuation; 0 when a text has no word (Lin 2004).

    That is the normalised similarity under insertions and deletions. Letters outside ASCII are
    letters, which `rouge-score` drops; but for those and underscores the two agree.
    """
    words, others = _WORD.findall(one.casefold()), _WORD.findall(other.casefold())
    return Indel.normalized_similarity(words, others) if words and others else 0.0
