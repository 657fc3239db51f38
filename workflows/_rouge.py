"""ROUGE-L: how much of two texts is one common subsequence of words (Lin 2004)."""

import re

from rapidfuzz.distance import Indel

_WORD = re.compile(r"\w+")


def rouge_l(one: str, other: str) -> float:
    """F1 in [0, 1] of the longest common subsequence, 2·LCS / (m + n), without case and
    punctuation; 0 when a text has no word.

    That is the normalised similarity under insertions and deletions.
    """
    words, others = _WORD.findall(one.casefold()), _WORD.findall(other.casefold())
    return Indel.normalized_similarity(words, others) if words and others else 0.0
