"""Retrieve so many times, then no more."""

from dataclasses import dataclass

from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Decision


@dataclass(frozen=True)
class Once:
    times: int

    @property
    def name(self) -> str:
        return f"once:{self.times}"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        more = moment.retrievals < self.times
        return Decision(policy=self.name, retrieve=more, reason=f"{self.times} are enough")


def build(*, times: int = 1) -> Policy:
    return Once(times)
