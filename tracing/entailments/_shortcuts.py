"""Pairs that need no model: a rule decides them before it is asked.

    exact          the same answer once normalised as SQuAD's scorer does: entailment
    containment    that, or the hypothesis stands in the premise as whole words: entailment

Caveat: they change scores, so they are off unless asked for, and the name that stands in
estimators and provenance says so. `containment` takes "not Paris" for "Paris".
"""

from collections.abc import Callable, Sequence
from typing import Literal

from hopscope.runtime.answers import contains, normalise
from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.runtime.types import Pairs
from hopscope.tracing.pairs import Judged, judged

Rule = Literal["none", "exact", "containment"]

_ENTAILED = Probabilities(1.0, 0.0, 0.0)


class Shortcut:
    """An entailment model that is asked only where the rule does not decide."""

    def __init__(self, entailment: Entailment, rule: Literal["exact", "containment"]) -> None:
        self.name = f"{entailment.name}+{rule}"
        self._entailment = entailment
        self._decides: Callable[[str, str], bool] = _same
        if rule == "containment":
            self._decides = contains

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement; see the port."""
        return self.judged(statements).probabilities

    def judged(self, statements: Sequence[Statement]) -> Judged:
        """The same with the count."""
        open_pairs = [s for s in statements if not self._decides(s.premise, s.hypothesis)]
        found, pairs = judged(self._entailment, open_pairs) if open_pairs else Judged([], Pairs())
        known = dict(zip(open_pairs, found, strict=True))
        return Judged(
            [known.get(s, _ENTAILED) for s in statements],
            pairs.model_copy(update={"asked": len(statements)}),
        )


def shortened(entailment: Entailment, rule: Rule) -> Entailment:
    """The model behind the rule; itself for `none`."""
    return entailment if rule == "none" else Shortcut(entailment, rule)


def _same(premise: str, hypothesis: str) -> bool:
    said = normalise(premise)
    return bool(said) and said == normalise(hypothesis)
