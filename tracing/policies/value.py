"""Value of information: retrieve while the predicted gain of the best continuation exceeds its
price.

    retrieve  ⇔  predicted gain > price · predicted cost

The gain is that of stopping at the best later point instead of here, in correctness or SePer, and
not of the next retrieval alone: the first hop of a chain earns nothing by itself. Trees predict it
from signals without gold (`tracing.signals`); `hopscope budget fit` fits them backward over stored
runs. The price is set so that the mean spend of those runs meets the budget. Where that takes two
prices, each question has one of them, drawn by its text.

Signals cost, too. Free signals come first; the reader writes a draft, and then drafts are compared,
only if the decision is in doubt, by margins that are fitted as well.

A refusal is final. Most workflows end with it; FLARE writes on and may ask again, but what is
learned is the worth of going on against that of searching no more.
"""

from dataclasses import dataclass
from pathlib import Path

from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Decision, digest
from hopscope.tracing.learned.files import read
from hopscope.tracing.learned.value_file import ValueFile
from hopscope.tracing.signals.gathering import gather
from hopscope.tracing.wrappers.cached import CachedReader

FINAL = "an earlier search was declined, and that is final"


@dataclass(frozen=True)
class ValuePolicy:
    file: ValueFile
    label: str

    @property
    def name(self) -> str:
        return f"value:{self.label}"

    def _drawn(self, question: str) -> str:
        """Of two prices, which share of the questions has the one of this question."""
        if self.file.other is None:
            return ""
        other = self.file.other
        share = other.share if other.takes(question) else 1 - other.share
        told = "less than 1%" if share < 0.005 else f"{share:.0%}"
        return f", at the price drawn for {told} of the questions"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        if self.file.always:
            reason = f"no price keeps the promise {self.file.promise}: it always retrieves"
            return Decision(policy=self.name, retrieve=True, reason=reason)
        if any(step.declined for step in moment.steps):
            return Decision(policy=self.name, retrieve=False, reason=FINAL)
        file = self.file.drawn(moment.question.text)
        head = file.head(moment.retrievals)
        known = file.told(moment.question.text)
        remembering = CachedReader(reader)  # the draft is needed by two stages
        for staged in head.stages:
            known |= gather(staged.stage, moment, remembering)
            predicted = staged.predict(head.inputs(known, file.signals))
            price = file.price * predicted.cost
            if abs(predicted.gain - price) >= staged.doubt:
                break
        worth = predicted.gain > price
        sign = ">" if worth else "≤"
        return Decision(
            policy=self.name,
            retrieve=worth,
            reason=f"gain {predicted.gain:+.3f} {sign} {price:.3f} for {predicted.cost:.0f} "
            f"tokens, by signals up to {staged.stage!r}"
            f"{self._drawn(moment.question.text)}",
            stage=staged.stage,
            signals=known,
            gain=predicted.gain,
            low=predicted.low,
            high=predicted.high,
            cost=predicted.cost,
            price=file.price,
        )


def build(
    *, file: Path, workflow: str | None, reader_name: str, prompts: str | None = None
) -> Policy:
    """`workflow`, `reader_name` and `prompts` are the run's; the file must be for the first two."""
    values = read(ValueFile, file, workflow=workflow, reader=reader_name, prompts=prompts)
    return ValuePolicy(values, label(values))


def label(file: ValueFile) -> str:
    """The part of the policy's name that tells files apart; absent fields do not count, nor do the
    prompts, which change no decision."""
    return digest(file.model_dump_json(exclude_none=True, exclude={"prompts"}))[:8]
