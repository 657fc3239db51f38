"""Never retrieve: closed-book, in the prompts of the workflow."""

from dataclasses import dataclass

from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Decision


@dataclass(frozen=True)
class Never:
    name: str = "never"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        return Decision(policy=self.name, retrieve=False, reason="never retrieves")


def build() -> Policy:
    return Never()
