"""The base of readers around another reader: it can do what the wrapped one can.

A reader that cannot draw more samples, cannot branch, or keeps no prefixes, has no such method; a
wrapper around it has None there. `isinstance` with `MoreSamples`, `BranchingReader` and
`PrefixReader` holds for a wrapper as for the reader in it.
"""

from collections.abc import Callable, Sequence

from hopscope.runtime.ports import (
    Branch,
    BranchingReader,
    BranchRequest,
    MoreSamples,
    PrefixReader,
    Reader,
)
from hopscope.runtime.types import Generation, GenerationRequest, Scored, ScoreRequest


class ForwardingReader:
    """Hands each call to the wrapped reader. A wrapper overrides the calls that it changes: `more`
    as `_more`, `branch` as `_branch`."""

    more: Callable[..., list[list[Generation]]] | None
    branch: Callable[[Sequence[BranchRequest]], list[list[Branch]]] | None
    prompt_ids: Callable[[GenerationRequest], tuple[int, ...]] | None
    reusable: Callable[[tuple[int, ...], tuple[int, ...]], int] | None

    def __init__(self, reader: Reader) -> None:
        self.name = reader.name
        self._reader = reader
        self.more = self._more if isinstance(reader, MoreSamples) else None
        self.branch = self._branch if isinstance(reader, BranchingReader) else None
        self.prompt_ids = reader.prompt_ids if isinstance(reader, PrefixReader) else None
        self.reusable = reader.reusable if isinstance(reader, PrefixReader) else None

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        """Continuations of each request; see the port."""
        return self._reader.generate(requests)

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Likelihoods of given continuations; see the port."""
        return self._reader.score(requests)

    def _more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        assert isinstance(self._reader, MoreSamples)
        return self._reader.more(requests, first=first)

    def _branch(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
        assert isinstance(self._reader, BranchingReader)
        return self._reader.branch(requests)
