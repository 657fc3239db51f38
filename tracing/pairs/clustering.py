"""Clusters of replies by meaning, from an entailment model's judgments of their pairs.

Both rules depend on the order of the replies, because a model's judgment of equivalence is not
transitive: put replies in a canonical order first.

Source: semantic entropy (Kuhn et al. 2023; Farquhar et al. 2024); SePer's public code uses their
rule, `seed`; lm-polygraph's is `first-match`.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Literal, TypeVar

from hopscope.runtime.ports import Probabilities

Request = TypeVar("Request")

EquivalenceRule = Literal["bi", "loose", "threshold"]
"""`bi` entailment is the most probable relation both ways; `loose` no contradiction either way
and not neutral both ways; `threshold` P(entailment) of at least a given τ both ways."""
Clustering = Literal["first-match", "seed"]
"""`first-match` a reply joins the first cluster whose first member it equals; `seed` each reply
without a cluster opens one and claims every later reply it equals, also those already claimed."""


def allows(
    relation: Probabilities, equivalence: EquivalenceRule = "bi", threshold: float = 0.5
) -> bool:
    """Whether two texts may mean the same, by the relation in one direction: if False they do not,
    whatever the relation in the other."""
    if equivalence == "threshold":
        return relation.entailment >= threshold
    likeliest = _likeliest(relation)
    return likeliest == "entailment" if equivalence == "bi" else likeliest != "contradiction"


def equivalent(
    forward: Probabilities,
    backward: Probabilities,
    equivalence: EquivalenceRule = "bi",
    threshold: float = 0.5,
) -> bool:
    """Whether two texts mean the same, by the relations in both directions."""
    if not all(allows(each, equivalence, threshold) for each in (forward, backward)):
        return False
    return equivalence != "loose" or "entailment" in map(_likeliest, (forward, backward))


def _likeliest(p: Probabilities) -> str:
    """The most probable relation; of equally probable ones the weakest."""
    return max(("contradiction", "neutral", "entailment"), key=lambda name: getattr(p, name))


def cluster(
    count: int,
    compare: Callable[[int, Sequence[int]], Generator[Request, None, Sequence[bool]]],
    clustering: Clustering = "first-match",
) -> Generator[Request, None, list[int]]:
    """The cluster of each of `count` replies. Ids count from 0 by first appearance.

    Replies are compared with the first members of clusters only, and with `first-match` only
    those that no earlier cluster has taken.

    Args:
        compare: whether the first reply of a cluster means the same as each of some later ones;
            its requests, the values it yields, are passed on.
    """
    ids: list[int | None] = [None] * count
    for i in range(count):
        if ids[i] is not None:
            continue
        ids[i] = i
        later = [j for j in range(i + 1, count) if ids[j] is None or clustering == "seed"]
        for j, same in zip(later, (yield from compare(i, later)), strict=True):
            if same:
                ids[j] = i
    numbers = {first: number for number, first in enumerate(dict.fromkeys(ids))}
    return [numbers[first] for first in ids]
