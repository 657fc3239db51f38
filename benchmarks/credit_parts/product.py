"""Credit as the product computes it."""

from credit_parts.bench import SEED, Benchmark, N
from credit_parts.prompted import Prompted
from credit_parts.recording import Recording
from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.runtime.types import Credit, Run
from hopscope.tracing.wrappers.cached import CachedEntailment


class Product:
    """The product's own computation, with empty caches."""

    def __init__(self, bench: Benchmark, rule: str) -> None:
        self.reader = Recording(bench.reader())
        self.model = CachedEntailment(Prompted(bench.model()))
        self._rule = rule
        measuring = Measuring(samples=N, seed=SEED, meters=("seper", "seper_hard"), rules=(rule,))
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
