"""An entailment model with random weights but meaningful verdicts."""

from collections.abc import Sequence

from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.tracing.entailments import lexical


class Prompted:
    """An entailment model with lexical verdicts at the model's cost. The model's own share keeps
    probabilities away from 0 and 1, and reveals effects of batches."""

    def __init__(self, model: Entailment) -> None:
        self.name = f"{model.name}, prompted"
        self._model = model
        self._words = lexical.build()

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        by_words, own = self._words.classify(statements), self._model.classify(statements)
        return [
            Probabilities(*(0.9 * word + 0.1 * share for word, share in zip(*both, strict=True)))
            for both in zip(by_words, own, strict=True)
        ]
