"""Retrieve `k` times at most: the fixed budget that adaptive policies are compared with."""

from dataclasses import dataclass

from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Decision


@dataclass(frozen=True)
class Fixed:
    k: int

    @property
    def name(self) -> str:
        return f"fixed:{self.k}"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        done = moment.retrievals
        reason = f"{done} of {self.k} retrievals done"
        return Decision(policy=self.name, retrieve=done < self.k, reason=reason)


def build(*, k: int = 1) -> Policy:
    if k < 0:
        raise UsageError(f"fixed:{k}: give 0 or more retrievals")
    return Fixed(k)
