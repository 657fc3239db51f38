"""Retrieve whenever the workflow wants to: it stops by its own rule."""

from dataclasses import dataclass

from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Decision


@dataclass(frozen=True)
class Native:
    name: str = "native"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        return Decision(policy=self.name, retrieve=True, reason="the workflow wants to")


def build() -> Policy:
    return Native()
