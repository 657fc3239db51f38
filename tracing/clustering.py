"""Grouping replies by meaning, from what an entailment model says about their pairs.

Both rules depend on the order of the replies, because equivalence as a model judges it is not
transitive: put replies in a canonical order first.

Source: semantic entropy (Kuhn et al. 2023; Farquhar et al. 2024); SePer's public code uses their
rule, `seed`; lm-polygraph's is `first-match`.
"""

from collections.abc import Callable
from typing import Literal

from hopscope.runtime.ports import Probabilities

Equivalence = Literal["bi", "loose", "threshold"]
"""`bi` entailment is the most probable relation both ways; `loose` no contradiction either way
and not neutral both ways; `threshold` P(entailment) of at least a given τ both ways."""
Clustering = Literal["first-match", "seed"]
"""`first-match` a reply joins the first cluster whose first member it equals; `seed` each reply
without a cluster opens one and claims every later reply it equals, also those already claimed."""


def equivalent(
    forward: Probabilities,
    backward: Probabilities,
    equivalence: Equivalence = "bi",
    threshold: float = 0.5,
) -> bool:
    """Whether two texts mean the same, from what each says about the other."""
    if equivalence == "threshold":
        return min(forward.entailment, backward.entailment) >= threshold
    relations = {_relation(forward), _relation(backward)}
    if equivalence == "bi":
        return relations == {"entailment"}
    return "contradiction" not in relations and relations != {"neutral"}


def _relation(p: Probabilities) -> str:
    """The most probable relation; of equals the one that claims less."""
    return max(("contradiction", "neutral", "entailment"), key=lambda name: getattr(p, name))


def cluster(
    count: int, equal: Callable[[int, int], bool], clustering: Clustering = "first-match"
) -> list[int]:
    """The cluster of each of `count` replies. Ids count from 0 by first appearance.

    Args:
        equal: whether replies i < j mean the same.
    """
    ids = (_first_match if clustering == "first-match" else _seed)(count, equal)
    numbers = {found: number for number, found in enumerate(dict.fromkeys(ids))}
    return [numbers[found] for found in ids]


def _first_match(count: int, equal: Callable[[int, int], bool]) -> list[int]:
    firsts: list[int] = []
    ids: list[int] = []
    for j in range(count):
        found = next((k for k, first in enumerate(firsts) if equal(first, j)), len(firsts))
        if found == len(firsts):
            firsts.append(j)
        ids.append(found)
    return ids


def _seed(count: int, equal: Callable[[int, int], bool]) -> list[int]:
    ids: list[int | None] = [None] * count
    for i in range(count):
        if ids[i] is None:
            ids[i] = i
            for j in range(i + 1, count):
                if equal(i, j):
                    ids[j] = i
    return [i for i in ids if i is not None]
