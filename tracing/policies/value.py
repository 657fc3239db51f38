"""Value of information: retrieve while what the best continuation is predicted to gain is more than
its price.

    retrieve  ⇔  predicted gain > price · predicted cost

The gain is that of stopping at the best later point instead of here, in correctness or SePer, and
not of the next retrieval alone: the first hop of a chain earns nothing by itself. It is predicted
from signals without gold (`tracing.signals`) by trees that `hopscope budget fit` has learned
backward over stored runs; the price is what makes the mean spend of those runs meet the budget.

Signals cost, too. What is free is looked at first; a draft, and then a comparison of drafts, is
asked for only where the decision is in doubt, by margins that are learned as well.
"""

from dataclasses import dataclass
from pathlib import Path

from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Decision, digest
from hopscope.tracing.caching import CachedReader
from hopscope.tracing.policies._learned import read
from hopscope.tracing.policies._value_file import ValueFile
from hopscope.tracing.signals import gather


@dataclass(frozen=True)
class Value:
    file: ValueFile
    label: str

    @property
    def name(self) -> str:
        return f"value:{self.label}"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        head = self.file.head(moment.retrievals)
        known: dict[str, float] = {}
        remembering = CachedReader(reader)  # the draft is needed by two stages
        for staged in head.stages:
            known |= gather(staged.stage, moment, remembering)
            found = staged.predict(head.inputs(known, self.file.signals))
            price = self.file.price * found.cost
            if abs(found.gain - price) >= staged.doubt:
                break
        worth = found.gain > price
        sign = ">" if worth else "≤"
        return Decision(
            policy=self.name,
            retrieve=worth,
            reason=f"gain {found.gain:+.3f} {sign} {price:.3f} for {found.cost:.0f} tokens, by "
            f"signals up to {staged.stage!r}",
            stage=staged.stage,
            signals=known,
            gain=found.gain,
            low=found.low,
            high=found.high,
            cost=found.cost,
            price=self.file.price,
        )


def build(*, file: Path, workflow: str, reader_name: str) -> Policy:
    """`workflow` and `reader_name` are the run's, which the file must be for."""
    found = read(ValueFile, file, workflow=workflow, reader=reader_name)
    return Value(found, digest(found.model_dump_json())[:8])
