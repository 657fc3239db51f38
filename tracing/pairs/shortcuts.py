"""Rules that decide a pair without the model.

    exact          the same answer after SQuAD's normalisation: entailment
    containment    that, or the premise contains the hypothesis as whole words: entailment

Caveat: they change scores, so they are off by default, and the name in estimators and provenance
includes the rule. `containment` takes "not Paris" for "Paris".
"""

from collections.abc import Callable, Sequence
from typing import Literal

from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.runtime.texts.answers import contains, normalise
from hopscope.runtime.types import PairCounts
from hopscope.tracing.pairs.forms import CountedRelations, classify_counted

ShortcutRule = Literal["none", "exact", "containment"]

_ENTAILED = Probabilities(1.0, 0.0, 0.0)


class Shortcut:
    """An entailment model that classifies only the pairs that the rule does not decide."""

    def __init__(self, entailment: Entailment, rule: Literal["exact", "containment"]) -> None:
        self.name = f"{entailment.name}+{rule}"
        self._entailment = entailment
        self._decides: Callable[[str, str], bool] = _same
        if rule == "containment":
            self._decides = contains

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement; see the port."""
        return self.classify_counted(statements).probabilities

    def classify_counted(self, statements: Sequence[Statement]) -> CountedRelations:
        """The same with the count."""
        open_pairs = [s for s in statements if not self._decides(s.premise, s.hypothesis)]
        found, pairs = (
            classify_counted(self._entailment, open_pairs)
            if open_pairs
            else CountedRelations([], PairCounts())
        )
        known = dict(zip(open_pairs, found, strict=True))
        return CountedRelations(
            [known.get(s, _ENTAILED) for s in statements],
            pairs.model_copy(update={"asked": len(statements)}),
        )


def shortened(entailment: Entailment, rule: ShortcutRule) -> Entailment:
    """The model with the rule in front of it; for `none` the model itself."""
    return entailment if rule == "none" else Shortcut(entailment, rule)


def _same(premise: str, hypothesis: str) -> bool:
    said = normalise(premise)
    return bool(said) and said == normalise(hypothesis)
