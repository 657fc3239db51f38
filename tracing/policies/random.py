"""Retrieve with probability `p` each time: the baseline that an adaptive policy must beat at the
same number of retrievals.

The draw depends only on seed, question and number of steps, so a resumed run decides as an
uninterrupted one.
"""

from dataclasses import dataclass
from random import Random

from hopscope.runtime.components import Share
from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Decision, digest


@dataclass(frozen=True)
class Chance:
    p: float

    @property
    def name(self) -> str:
        return f"random:{self.p:g}"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        parts = (str(moment.seed), moment.question.text, str(len(moment.steps)))
        drawn = Random(digest(*parts)).random()
        reason = f"drew {drawn:.3f} of {self.p:g}"
        return Decision(policy=self.name, retrieve=drawn < self.p, reason=reason)


def build(*, p: Share = 0.5) -> Policy:
    return Chance(p)
