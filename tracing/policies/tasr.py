"""TASR: stop when the answer repeats and the calibrated margin of the draft exceeds a threshold.

TASR (arXiv 2606.13814): the normalised answer equals that of the round before, and the margin,
calibrated by isotonic regression to the probability of being right, is above 0.25. Here the margin
is that of `tracing.draft.margin`; a `calibration` file of `hopscope budget fit --kind tasr` maps it
to a probability, without one it counts as it is.
"""

from dataclasses import dataclass
from pathlib import Path

from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Decision
from hopscope.tracing.draft import before_last, draft, margin, same
from hopscope.tracing.policies._calibration import Calibration
from hopscope.tracing.policies._learned import read


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
        told = "repeats" if repeats else "has changed"
        return Decision(
            policy=self.name,
            retrieve=not stop,
            reason=f"the answer {told}, margin {value:.3f} against {self.threshold:g}",
            signals={"repeats": float(repeats), "margin": value},
        )


def build(
    *, threshold: float = 0.25, calibration: Path | None = None, workflow: str, reader_name: str
) -> Policy:
    """`workflow` and `reader_name` are the run's, which a calibration must be for."""
    if calibration is None:
        return Tasr(threshold, None)
    return Tasr(threshold, read(Calibration, calibration, workflow=workflow, reader=reader_name))
