"""Gates: policies that compare one number about the reader's draft with a threshold."""

from collections.abc import Callable
from dataclasses import dataclass

from hopscope.runtime.ports import Moment, Reader
from hopscope.runtime.types import Decision, Generation
from hopscope.tracing.signals.draft import draft


@dataclass(frozen=True)
class Gate:
    """Retrieves while the reader is unsure of its draft."""

    signal: str
    threshold: float
    measure: Callable[[Generation, Reader], float]
    sure_above: bool
    """Whether high values mean that the reader is sure."""

    @property
    def name(self) -> str:
        return f"{self.signal}:{self.threshold:g}"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        value = self.measure(draft(moment, reader), reader)
        unsure = value < self.threshold if self.sure_above else value > self.threshold
        below, above = ("<", "≥") if self.sure_above else ("≤", ">")
        sign = below if unsure == self.sure_above else above
        return Decision(
            policy=self.name,
            retrieve=unsure,
            reason=f"{self.signal} {value:.3f} {sign} {self.threshold:g}",
            signals={self.signal: value},
        )
