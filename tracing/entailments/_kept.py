"""An entailment model that is asked about a pair once, for all processes and for good.

An answer is kept under a hash of all it depends on: the model's name, which tells its revision and
the rules before it, and the three texts as `tracing.pairs` normalises them.

Sound where the name stands for the weights, as that of a local folder or of the hub does.
"""

import json
from collections.abc import Sequence

from hopscope.runtime.ports import AnswerCache, Entailment, Probabilities, Statement
from hopscope.runtime.types import Pairs, digest
from hopscope.tracing.pairs import Judged, judged, normalised


class KeptEntailment:
    """An entailment model behind a cache. Threads may share it."""

    def __init__(self, entailment: Entailment, cache: AnswerCache) -> None:
        self.name = entailment.name
        self._entailment = entailment
        self._cache = cache

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement; see the port."""
        return self.judged(statements).probabilities

    def judged(self, statements: Sequence[Statement]) -> Judged:
        """The same with the count. What is new goes to the model in one call, each pair once."""
        keys = {s: digest("entailment", self.name, *normalised(s)) for s in statements}
        kept = self._cache.get(list(keys.values()))
        known = {key: Probabilities(*json.loads(text)) for key, text in kept.items()}
        cached = sum(keys[s] in known for s in statements)
        new = {key: normalised(s) for s, key in keys.items() if key not in known}
        pairs = Pairs()
        if new:
            found, pairs = judged(self._entailment, list(new.values()))
            fresh = dict(zip(new, found, strict=True))
            self._cache.put({key: json.dumps(one) for key, one in fresh.items()})
            known |= fresh
        return Judged(
            [known[keys[s]] for s in statements],
            Pairs(asked=len(statements), cached=cached + pairs.cached, computed=pairs.computed),
        )
