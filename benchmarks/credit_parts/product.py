"""Credit as the product computes it."""

from collections.abc import Sequence
from typing import Any

from credit_parts.bench import SEED, Benchmark, N
from credit_parts.prompted import Prompted
from credit_parts.straightforward import Clock
from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.runtime.models.devices import Precision
from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.runtime.types import Generation, GenerationRequest, Measurement, Message, Prompt, Run
from hopscope.tracing.wrappers.cached import CachedEntailment


class Recording:
    """The product's reader, with a record of its samples for comparison, and a clock."""

    def __init__(self, reader: Any) -> None:
        self.name = reader.name
        self.reader = reader
        self.score, self.more = reader.score, reader.more
        self.clock = Clock()
        self.samples: dict[GenerationRequest, list[Generation]] = {}

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        with self.clock.running():
            found: list[list[Generation]] = self.reader.generate(requests)
        self.samples.update(zip(requests, found, strict=True))
        return found


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
        self,
        bench: Benchmark,
        rule: str,
        meters: tuple[str, ...] = ("seper", "seper_hard"),
        *,
        precision: Precision = "single",
        tolerance: float = 0.0,
    ) -> None:
        self.reader = Recording(bench.reader())
        self.entailment = Clocked(Prompted(bench.model(precision)))
        self.model = CachedEntailment(self.entailment)
        self._rule = rule
        measuring = Measuring(
            samples=N,
            seed=SEED,
            options={"seper.tolerance": str(tolerance)},
            meters=meters,
            rules=(rule,),
        )
        self._appraiser = Appraiser(self.reader, self.model, measuring)
        self.pairs = 0

    def warm(self) -> None:
        """Do once what is only done once, with texts that no run shares."""
        prompt = Prompt(messages=(Message(role="user", content="Which?"),))
        self.reader.reader.generate([GenerationRequest(prompt=prompt, n=N, max_tokens=4)])
        self.model.classify([Statement("Which?", "warm", "up")])

    def credits(self, found: Run) -> dict[tuple[str, int], float]:
        """The value of each credit, by meter and step."""
        return {key: _value(each) for key, each in self.measured(found).items()}

    def measured(self, found: Run) -> dict[tuple[str, int], Measurement]:
        """The same with intervals."""
        measured = self._appraiser.appraise(found)
        self.pairs += measured.appraisal.pairs.computed if measured.appraisal.pairs else 0
        return {
            (credit.meter, credit.step): credit.measurement
            for credit in measured.credits
            if credit.rule == self._rule and credit.step is not None
        }


def _value(measured: Measurement) -> float:
    if measured.value is None:
        raise SystemExit(f"a credit could not be measured: {measured.reason}")
    return measured.value
