"""The inputs of all parts of the credit benchmark."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from credit_parts.straightforward import Clock, Plain
from hopscope.api import parts
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.models.checkpoint import locate
from hopscope.runtime.models.devices import Precision
from hopscope.runtime.ports import Entailment
from hopscope.runtime.types import Question
from hopscope.tracing.entailments.nli import statement_texts
from hopscope.tracing.pairs.classifier import load

N, SEED = 10, 0
"""Samples of a context, and their seed."""
AREA = 16_384
"""Rows times positions of one batch."""

Row = dict[str, Any]
"""Measurements by name; rows may contain rows."""


class Benchmark(NamedTuple):
    """The inputs of all parts."""

    spec: str
    """The reader, as on the command line."""
    device: str
    wall: bool
    limit: int
    nli: Path
    folder: Path
    """The folder of temporary files."""

    def reader(self, *, bare: bool = False) -> Any:
        """The reader with an empty cache, or without one."""
        options = f"device={self.device}" + (",prefix_cache=0" if bare else "")
        return parts.reader(f"{self.spec},{options}")

    def model(self, precision: Precision = "single") -> Entailment:
        """The entailment model without a cache."""
        return load(
            locate(str(self.nli)),
            texts=statement_texts,
            device=self.device,
            max_batch_tokens=AREA,
            precision=precision,
        )

    def plain_model(self) -> Entailment:
        """The same model as transformers runs it."""
        return Plain(self.nli, self.device)

    def seconds(self, clock: Clock) -> float:
        return clock.wall if self.wall else clock.processor

    def ratio(self, slow: Clock | float, fast: Clock) -> float:
        whole = self.seconds(slow) if isinstance(slow, Clock) else slow
        return whole / self.seconds(fast)

    def questions(self, limit: int | None = None) -> list[Question]:
        limit = limit or self.limit
        chains = [q for q in hopland.questions("test") if q.kind == "chain" and q.hops == 2]
        return [q.question for q in chains[:: max(1, len(chains) // limit)][:limit]]

    def deps(self, reader: Any) -> Deps:
        return Deps(reader=reader, retriever=parts.corpus(parts.HOPLAND))


def timed(act: Callable[[], object]) -> Clock:
    clock = Clock()
    with clock.running():
        act()
    return clock
