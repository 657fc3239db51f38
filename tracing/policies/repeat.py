"""Stop when a retrieval does not change the answer: two drafts in a row are equal after
normalisation. TASR adds a margin to this plain rule (arXiv 2606.13814).
"""

from dataclasses import dataclass

from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Decision
from hopscope.tracing.signals.draft import before_last, draft, same

ASKS = True
"""It cannot decide without a reader."""


@dataclass(frozen=True)
class Repeat:
    name: str = "repeat"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        earlier = before_last(moment)
        if earlier is None:
            return Decision(policy=self.name, retrieve=True, reason="nothing to compare with yet")
        repeats = same(draft(moment, reader), draft(moment, reader, earlier))
        reason = "the answer repeats" if repeats else "the answer has changed"
        signals = {"repeats": float(repeats)}
        return Decision(policy=self.name, retrieve=not repeats, reason=reason, signals=signals)


def build() -> Policy:
    return Repeat()
