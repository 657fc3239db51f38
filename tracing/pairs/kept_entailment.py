"""An entailment model with a persistent cache: each pair is computed once for all processes.

A result is stored under a hash of all it depends on: the model's name, which includes its revision
and the shortcut rules, and the three texts as `tracing.pairs` normalises them.

Valid if the name identifies the weights, as the name of a local folder or of a hub model does.
"""

import json
from collections.abc import Sequence

from hopscope.runtime.ports import AnswerCache, Entailment, Probabilities, Statement
from hopscope.runtime.types import PairCounts, digest
from hopscope.tracing.pairs.forms import CountedRelations, classify_counted, normalised


class KeptEntailment:
    """An entailment model behind a cache. Threads may share it."""

    def __init__(self, entailment: Entailment, cache: AnswerCache) -> None:
        self.name = entailment.name
        self._entailment = entailment
        self._cache = cache

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement; see the port."""
        return self.classify_counted(statements).probabilities

    def classify_counted(self, statements: Sequence[Statement]) -> CountedRelations:
        """The same with the count. New pairs go to the model in one call, each once."""
        keys = {s: digest("entailment", self.name, *normalised(s)) for s in statements}
        kept = self._cache.get(list(keys.values()))
        known = {key: Probabilities(*json.loads(text)) for key, text in kept.items()}
        cached = sum(keys[s] in known for s in statements)
        new = {key: normalised(s) for s, key in keys.items() if key not in known}
        pairs = PairCounts()
        if new:
            computed, pairs = classify_counted(self._entailment, list(new.values()))
            fresh = dict(zip(new, computed, strict=True))
            self._cache.put({key: json.dumps(one) for key, one in fresh.items()})
            known |= fresh
        return CountedRelations(
            [known[keys[s]] for s in statements],
            PairCounts(
                asked=len(statements), cached=cached + pairs.cached, computed=pairs.computed
            ),
        )
