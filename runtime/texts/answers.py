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
    plain = answer.lower().translate(_GLUE if normaliser == "squad" else _SPACE)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def exact_match(answer: str, golds: Sequence[str], normaliser: Normaliser = "squad") -> float:
    """1 if the normalised answer equals any normalised gold, else 0. An empty answer scores 0."""
    prediction = normalise(answer, normaliser)
    return float(
        bool(prediction) and any(prediction == normalise(gold, normaliser) for gold in golds)
    )


def token_f1(answer: str, golds: Sequence[str], normaliser: Normaliser = "squad") -> float:
    """Best F1 of the token bags, in [0, 1]; yes, no and noanswer earn nothing unless equal."""
    prediction = normalise(answer, normaliser)
    return max((_bag_f1(prediction, normalise(gold, normaliser)) for gold in golds), default=0.0)


def _bag_f1(prediction: str, gold: str) -> float:
    if prediction != gold and (prediction in _CLOSED or gold in _CLOSED):
        return 0.0
    one, other = prediction.split(), gold.split()
    if one == other or set(one).isdisjoint(other):  # most pairs, without counting
        return float(bool(one) and one == other)
    common = sum((Counter(one) & Counter(other)).values())
    return 2 * common / (len(one) + len(other)) if common else 0.0


def contains(text: str, gold: str, normaliser: Normaliser = "squad") -> bool:
    """Whether the normalised gold stands in the normalised text as whole words.

    A gold that normalises to nothing is contained in nothing.
    """
    phrase = normalise(gold, normaliser)
    return bool(phrase) and f" {phrase} " in f" {normalise(text, normaliser)} "


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
