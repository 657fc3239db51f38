"""A reader that records its samples and its time."""

from collections.abc import Sequence
from typing import Any

from credit_parts.straightforward import Clock
from hopscope.runtime.types import Generation, GenerationRequest


class Recording:
    """The product's reader, with a record of its samples for comparison, and a clock."""

    def __init__(self, reader: Any) -> None:
        self.name = reader.name
        self.reader = reader
        self.score, self.more = reader.score, reader.more
        self.clock = Clock()
        self.samples: dict[GenerationRequest, list[Generation]] = {}

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        with self.clock.running():
            found: list[list[Generation]] = self.reader.generate(requests)
        self.samples.update(zip(requests, found, strict=True))
        return found
