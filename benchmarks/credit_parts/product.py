"""Credit as the product computes it."""

from collections.abc import Sequence

from credit_parts.bench import SEED, Benchmark, N
from credit_parts.prompted import Prompted
from credit_parts.recording import Recording
from credit_parts.straightforward import Clock
from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.runtime.types import Credit, Run
from hopscope.tracing.wrappers.cached import CachedEntailment


class Clocked:
    """An entailment model with a clock."""

    def __init__(self, model: Entailment) -> None:
        self.name = model.name
        self.clock = Clock()
        self._model = model

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        with self.clock.running():
            return self._model.classify(statements)


class Product:
    """The product's own computation, with empty caches."""

    def __init__(
        self, bench: Benchmark, rule: str, meters: tuple[str, ...] = ("seper", "seper_hard")
    ) -> None:
        self.reader = Recording(bench.reader())
        self.entailment = Clocked(Prompted(bench.model()))
        self.model = CachedEntailment(self.entailment)
        self._rule = rule
        measuring = Measuring(samples=N, seed=SEED, meters=meters, rules=(rule,))
        self._appraiser = Appraiser(self.reader, self.model, measuring)
        self.pairs = 0

    def credits(self, found: Run) -> dict[tuple[str, int], float]:
        measured = self._appraiser.appraise(found)
        self.pairs += measured.appraisal.pairs.computed if measured.appraisal.pairs else 0
        return {
            (credit.meter, credit.step): _value(credit)
            for credit in measured.credits
            if credit.rule == self._rule and credit.step is not None
        }


def _value(credit: Credit) -> float:
    if credit.measurement.value is None:
        raise SystemExit(f"a credit could not be measured: {credit.measurement.reason}")
    return credit.measurement.value
