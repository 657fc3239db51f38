"""Entailment relations between texts, classified in rounds: only pairs that can still matter.

Code that needs relations is a generator: it yields pairs, and their relations are known when it
resumes. The generators of all contexts run side by side, and the pairs they need next go to the
entailment model in one call.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import TypeVar

from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.tracing.pairs.clustering import (
    Clustering,
    EquivalenceRule,
    allows,
    cluster,
    equivalent,
)

Key = TypeVar("Key")
Result = TypeVar("Result")
Pair = tuple[str, str]
"""Premise and hypothesis."""
PairQuery = Generator[Iterable[Pair], None, Result]
"""Yields the pairs whose relations it needs next; returns a result."""

NOTHING = Probabilities(0.0, 1.0, 0.0)
"""The relation of an empty text to any text, in either direction."""


class Relations:
    """The known relations between texts that answer one question."""

    def __init__(self, entailment: Entailment, question: str) -> None:
        self._entailment = entailment
        self._question = question
        self._known: dict[Pair, Probabilities] = {}

    def __call__(self, premise: str, hypothesis: str) -> Probabilities:
        """The relation of a pair that was classified."""
        return self._known[premise, hypothesis] if premise and hypothesis else NOTHING

    def settle(self, queries: Mapping[Key, PairQuery[Result]]) -> dict[Key, Result]:
        """The result of each query. One call to the model holds the next new pairs of all.

        Raises:
            EntailmentError: the model failed.
        """
        results: dict[Key, Result] = {}
        while len(results) < len(queries):
            wanted: dict[Pair, None] = {}
            for key, query in queries.items():
                if key not in results:
                    try:
                        wanted |= dict.fromkeys(self._next(query))
                    except StopIteration as end:
                        results[key] = end.value
            if wanted:
                self._classify(list(wanted))
        return {key: results[key] for key in queries}

    def _next(self, query: PairQuery[object]) -> list[Pair]:
        """The next pairs that are new; a query without new pairs resumes at once.

        Raises:
            StopIteration: the query has returned.
        """
        while True:
            pairs = next(query)
            if new := [pair for pair in pairs if all(pair) and pair not in self._known]:
                return new

    def _classify(self, pairs: list[Pair]) -> None:
        statements = [Statement(self._question, *pair) for pair in pairs]
        self._known.update(zip(pairs, self._entailment.classify(statements), strict=True))


def alike(
    pairs: Sequence[Pair], relations: Relations, equivalence: EquivalenceRule, threshold: float
) -> PairQuery[list[bool]]:
    """Whether the two texts of each pair mean the same.

    The second direction is classified only where the first allows it. The shorter text is the
    first premise, as it says less and so is less likely to entail the longer one.
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
    equivalence: EquivalenceRule,
    threshold: float,
    clustering: Clustering,
) -> PairQuery[list[int]]:
    """The cluster of each text; equal texts share one, whatever the model's judgment."""
    distinct = list(dict.fromkeys(texts))

    def compare(first: int, later: Sequence[int]) -> PairQuery[list[bool]]:
        pairs = [(distinct[first], distinct[j]) for j in later]
        return alike(pairs, relations, equivalence, threshold)

    ids = yield from cluster(len(distinct), compare, clustering)
    of_text = dict(zip(distinct, ids, strict=True))
    return [of_text[text] for text in texts]
