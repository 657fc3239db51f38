"""A reader that counts the cached tokens of its prompts, as a run does."""

from collections.abc import Iterable, Sequence

from hopscope.runtime.budget.kept_prefixes import KeptPrefixes
from hopscope.runtime.ports import Reader
from hopscope.runtime.types import Generation, GenerationRequest, Step
from hopscope.runtime.wrappers.forwarding_reader import ForwardingReader


class PrefixCountingReader(ForwardingReader):
    """Requests come after those of a run's steps, and after each other. Not for threads."""

    def __init__(self, reader: Reader, steps: Iterable[Step] = ()) -> None:
        super().__init__(reader)
        self._prefixes = KeptPrefixes(steps)

    def recall(self, steps: Iterable[Step]) -> None:
        """Take note of further steps of the run."""
        self._prefixes.recall(steps)

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        return self._prefixes.counted(self._reader, requests, super().generate(requests))
