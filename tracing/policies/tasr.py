"""TASR: stop when the answer repeats and the calibrated margin of the draft exceeds a threshold.

TASR (arXiv 2606.13814): the normalised answer equals that of the round before, and the margin,
calibrated by isotonic regression to the probability of a right answer, is above 0.25. Here the
margin is that of `tracing.signals.draft.margin`; a `calibration` file of
`hopscope budget fit --kind tasr` maps it to a probability, without one the raw margin counts.
"""

from dataclasses import dataclass
from pathlib import Path

from hopscope.runtime.components import Share
from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Decision
from hopscope.tracing.learned.calibration import Calibration
from hopscope.tracing.learned.files import read
from hopscope.tracing.signals.draft import before_last, draft, margin, same

ASKS = True
"""It cannot decide without a reader."""


@dataclass(frozen=True)
class Tasr:
    threshold: float
    calibration: Calibration | None

    @property
    def name(self) -> str:
        kind = "calibrated" if self.calibration else "raw"
        return f"tasr:{self.threshold:g} ({kind})"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        earlier = before_last(moment)
        if earlier is None:
            return Decision(policy=self.name, retrieve=True, reason="nothing to compare with yet")
        now = draft(moment, reader)
        repeats = same(now, draft(moment, reader, earlier))
        value = margin(now, reader)
        value = self.calibration.of(value) if self.calibration else value
        stop = repeats and value > self.threshold
        change = "repeats" if repeats else "has changed"
        return Decision(
            policy=self.name,
            retrieve=not stop,
            reason=f"the answer {change}, margin {value:.3f} against {self.threshold:g}",
            signals={"repeats": float(repeats), "margin": value},
        )


def build(
    *,
    threshold: Share = 0.25,
    calibration: Path | None = None,
    workflow: str | None,
    reader_name: str,
    prompts: str | None = None,
) -> Policy:
    """`workflow`, `reader_name` and `prompts` are the run's; a calibration must be for the first
    two."""
    if calibration is None:
        return Tasr(threshold, None)
    found = read(Calibration, calibration, workflow=workflow, reader=reader_name, prompts=prompts)
    return Tasr(threshold, found)
