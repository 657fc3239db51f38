"""What texts say about each other, asked in rounds: only about pairs that can still matter.

What needs relations is a generator: it yields pairs, and when it goes on, what is said of them is
known. The generators of all contexts go on side by side, and what they need next goes to the
entailment model in one call.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import TypeVar

from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.tracing.clustering import Clustering, Equivalence, allows, cluster, equivalent

Key = TypeVar("Key")
Found = TypeVar("Found")
Pair = tuple[str, str]
"""Premise and hypothesis."""
Asking = Generator[Iterable[Pair], None, Found]
"""On the way to something found, the pairs that must be known before it goes on."""

NOTHING = Probabilities(0.0, 1.0, 0.0)
"""What a text without words says about anything, and anything about it."""


class Relations:
    """What texts that answer one question say about each other, as far as it was asked."""

    def __init__(self, entailment: Entailment, question: str) -> None:
        self._entailment = entailment
        self._question = question
        self._known: dict[Pair, Probabilities] = {}

    def __call__(self, premise: str, hypothesis: str) -> Probabilities:
        """What was learned of a pair."""
        return self._known[premise, hypothesis] if premise and hypothesis else NOTHING

    def settle(self, askings: Mapping[Key, Asking[Found]]) -> dict[Key, Found]:
        """What each finds. A call to the model holds the next new pairs of all.

        Raises:
            EntailmentError: the model failed.
        """
        found: dict[Key, Found] = {}
        while len(found) < len(askings):
            wanted: dict[Pair, None] = {}
            for key, asking in askings.items():
                if key not in found:
                    try:
                        wanted |= dict.fromkeys(self._next(asking))
                    except StopIteration as end:
                        found[key] = end.value
            if wanted:
                self._learn(list(wanted))
        return {key: found[key] for key in askings}

    def _next(self, asking: Asking[object]) -> list[Pair]:
        """The next pairs that are new; what needs none goes on at once.

        Raises:
            StopIteration: it is at its end.
        """
        while True:
            pairs = next(asking)
            if new := [pair for pair in pairs if all(pair) and pair not in self._known]:
                return new

    def _learn(self, pairs: list[Pair]) -> None:
        asked = [Statement(self._question, *pair) for pair in pairs]
        self._known.update(zip(pairs, self._entailment.classify(asked), strict=True))


def alike(
    pairs: Sequence[Pair], relations: Relations, equivalence: Equivalence, threshold: float
) -> Asking[list[bool]]:
    """Whether the two texts of each pair mean the same.

    The second direction is asked about only where the first allows it. The shorter text is the
    first premise, as what says less is less likely to entail what says more.
    """
    ordered = [_shorter_first(*pair) for pair in pairs]
    yield ordered
    allowed = {pair for pair in ordered if allows(relations(*pair), equivalence, threshold)}
    yield [(second, first) for first, second in ordered if (first, second) in allowed]
    return [
        (first, second) in allowed
        and equivalent(
            relations(first, second), relations(second, first), equivalence, threshold
        )
        for first, second in ordered
    ]  # fmt: skip


def _shorter_first(one: str, other: str) -> Pair:
    return (one, other) if (len(one), one) <= (len(other), other) else (other, one)


def clusters(
    texts: Sequence[str],
    relations: Relations,
    *,
    equivalence: Equivalence,
    threshold: float,
    clustering: Clustering,
) -> Asking[list[int]]:
    """The cluster of each text; equal texts are in one, whatever the model says of them."""
    distinct = list(dict.fromkeys(texts))

    def compare(first: int, later: Sequence[int]) -> Asking[list[bool]]:
        pairs = [(distinct[first], distinct[j]) for j in later]
        return alike(pairs, relations, equivalence, threshold)

    ids = yield from cluster(len(distinct), compare, clustering)
    of_text = dict(zip(distinct, ids, strict=True))
    return [of_text[text] for text in texts]
