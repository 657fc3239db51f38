"""Stop when the last retrieval did little for the reader's confidence in its own answer.

The gain is GroGU after the last step minus GroGU before it (see `tracing.meters.grogu`), which
needs no gold. Before the first retrieval there is no gain, and it retrieves.
"""

from dataclasses import dataclass

from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Decision
from hopscope.tracing.meters.grogu import GroGU
from hopscope.tracing.signals.draft import before_last

ASKS = True
"""It cannot decide without a reader."""


@dataclass(frozen=True)
class GainGate:
    threshold: float

    @property
    def name(self) -> str:
        return f"grogu:{self.threshold:g}"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        earlier = before_last(moment)
        if earlier is None:
            return Decision(policy=self.name, retrieve=True, reason="no step to go by yet")
        prompts = moment.prompts.option if moment.prompts else ""
        meter = GroGU(reader, score="entropy", seed=moment.seed, prompts=prompts)
        then, now = meter.measure(moment.question, [earlier, moment.evidence])
        if then.value is None or now.value is None:
            reason = f"no gain to go by: {now.reason or then.reason}"
            return Decision(policy=self.name, retrieve=True, reason=reason)
        gain = now.value - then.value
        return Decision(
            policy=self.name,
            retrieve=gain >= self.threshold,
            reason=f"the last step gained {gain:.3f} nats against {self.threshold:g}",
            signals={"grogu_gain": gain},
        )


def build(*, threshold: float = 0.05) -> Policy:
    return GainGate(threshold)
