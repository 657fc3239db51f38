"""A reader with a cache that all processes share and that never expires.

The key of an answer is a hash of all it depends on: the reader's name with model and revision, the
prompt's text, the settings and the seed. The prompt's list of passages (`shown`) is no part of it.
An answer from the cache costs nothing: its usage is zero, and its span has `hopscope.cache_hit`.

The cache is sound if the name identifies the weights, as for a local folder or the hub. A server
can change the model behind a name.
"""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from pydantic import TypeAdapter

from hopscope.runtime.ports import AnswerCache, Reader
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Scored,
    ScoreRequest,
    Usage,
    digest,
)
from hopscope.runtime.wrappers.forwarding_reader import ForwardingReader

Request = TypeVar("Request", GenerationRequest, ScoreRequest)
Answer = TypeVar("Answer")

_GENERATIONS = TypeAdapter(list[Generation])
_SCORED = TypeAdapter(Scored)


class KeptReader(ForwardingReader):
    """A reader behind a cache. Branches are not cached. Threads may share it."""

    def __init__(self, reader: Reader, cache: AnswerCache) -> None:
        super().__init__(reader)
        self._cache = cache

    @property
    def inner(self) -> Reader:
        """The reader behind the cache."""
        return self._reader

    def around(self, reader: Reader) -> "KeptReader":
        """The same cache before another reader of the same answers."""
        return KeptReader(reader, self._cache)

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        return self._generations(requests, 0, super().generate)

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        keys = [self._key("score", request) for request in requests]
        answers = self._answers(keys, requests, super().score, _SCORED)
        return [one.model_copy(update={"usage": Usage()}) if hit else one for one, hit in answers]

    def _more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        return self._generations(requests, first, partial(super()._more, first=first))

    def _generations(
        self,
        requests: Sequence[GenerationRequest],
        first: int,
        ask: Callable[[list[GenerationRequest]], list[list[Generation]]],
    ) -> list[list[Generation]]:
        keys = [self._key(f"generate/{first}", request) for request in requests]
        return [
            [g.model_copy(update={"usage": Usage()}) for g in replies] if hit else replies
            for replies, hit in self._answers(keys, requests, ask, _GENERATIONS)
        ]

    def _answers(
        self,
        keys: list[str],
        requests: Sequence[Request],
        ask: Callable[[list[Request]], list[Answer]],
        form: TypeAdapter[Answer],
    ) -> list[tuple[Answer, bool]]:
        """Each answer and whether it was free. New answers come from one call, each once."""
        cached = self._cache.get(keys)
        known = {key: form.validate_json(text) for key, text in cached.items()}
        new = {key: one for key, one in zip(keys, requests, strict=True) if key not in known}
        paid: set[str] = set()
        if new:
            answers = dict(zip(new, ask(list(new.values())), strict=True))
            self._cache.put({key: form.dump_json(one).decode() for key, one in answers.items()})
            known |= answers
            paid = set(new)
        results = []
        for key in keys:
            results.append((known[key], key not in paid))
            paid.discard(key)  # a repeat is free
        return results

    def _key(self, kind: str, request: GenerationRequest | ScoreRequest) -> str:
        # Without a given thought, the key is the same as before thoughts existed.
        settings = request.model_dump(mode="json", exclude={"prompt": {"shown"}}, exclude_none=True)
        return digest(kind, self.name, json.dumps(settings, sort_keys=True))
