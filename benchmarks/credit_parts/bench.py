"""What all parts of the credit benchmark work with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from credit_parts.straightforward import Clock, Plain
from hopscope.api import parts
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.models.checkpoint import locate
from hopscope.runtime.ports import Entailment
from hopscope.runtime.types import Question
from hopscope.tracing.entailments.nli import statement_texts
from hopscope.tracing.pairs.classifier import load

N, SEED = 10, 0
"""Samples of a context, and what they are drawn from."""
AREA = 16_384
"""Rows times positions that go through a model together."""

Row = dict[str, Any]
"""What was measured, by its name; rows may hold rows."""


class Benchmark(NamedTuple):
    """What all parts work with."""

    spec: str
    """The reader, as on the command line."""
    device: str
    wall: bool
    limit: int
    nli: Path
    folder: Path
    """For files that are not kept."""

    def reader(self, *, bare: bool = False) -> Any:
        """The reader with nothing remembered yet, or that remembers nothing."""
        options = f"device={self.device}" + (",prefix_cache=0" if bare else "")
        return parts.reader(f"{self.spec},{options}")

    def model(self) -> Entailment:
        """The entailment model without any memory."""
        checkpoint = locate(str(self.nli))
        return load(checkpoint, texts=statement_texts, device=self.device, max_batch_tokens=AREA)

    def plain_model(self) -> Entailment:
        """The same as transformers has it."""
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
