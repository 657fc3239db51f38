"""Counts the prompt tokens of a run that its reader has read before, and still has at hand.

A reader with a prefix cache reads a common beginning once. How much it really reuses depends on
what else it was asked, and the record of a run must not. So a token counts as cached if an earlier
request of the same run begins with the same tokens, by the rule of the reader's own cache. Servers
tell how much they have billed as cached; their counts stay as they are.
"""

from collections.abc import Iterable, Sequence

from hopscope.runtime.ports import PrefixReader, Reader
from hopscope.runtime.types import Exchange, Generation, GenerationRequest, Step

Tokens = tuple[int, ...]


class KeptPrefixes:
    """What one run has asked its reader so far. Not shared between runs."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        """`steps` are those of an earlier part of the run."""
        self._unread: list[GenerationRequest] = []
        self._read: list[Tokens] = []
        self.recall(steps)

    def recall(self, steps: Iterable[Step]) -> None:
        """Add the requests of steps."""
        exchanges: Iterable[Exchange] = (each for step in steps for each in step.exchanges)
        self._unread += [each.request for each in exchanges]

    def counted(
        self,
        reader: Reader,
        requests: Sequence[GenerationRequest],
        replies: Sequence[list[Generation]],
    ) -> list[list[Generation]]:
        """The replies to the run's next requests with their cached tokens; unchanged by a reader
        that keeps no prefixes."""
        if not isinstance(reader, PrefixReader):
            return list(replies)
        self._read += [reader.prompt_ids(request) for request in self._unread]
        self._unread.clear()
        return [
            self._of_one(reader, request, generations)
            for request, generations in zip(requests, replies, strict=True)
        ]

    def _of_one(
        self, reader: PrefixReader, request: GenerationRequest, generations: list[Generation]
    ) -> list[Generation]:
        ids = reader.prompt_ids(request)
        cached = max((reader.reusable(ids, earlier) for earlier in self._read), default=0)
        self._read.append(ids)
        first, *others = generations  # it carries the usage of the prompt
        count = min(cached, first.usage.input_tokens)
        usage = first.usage.model_copy(update={"cached_tokens": count})
        return [first.model_copy(update={"usage": usage}), *others]
