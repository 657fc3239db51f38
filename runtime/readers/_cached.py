"""A reader that asks once, for all processes and for good, what is kept in a cache.

An answer is kept under a hash of all it depends on: the reader's name, which tells the model and
its revision, the prompt's text, the settings and the seed. Which passages a prompt says it shows
is not part of that. An answer from the cache costs nothing: its usage is zero, by which its span
says `hopscope.cache_hit`.

Sound where the name stands for the weights, as that of a local folder or of the hub does. A server
can change the model behind a name.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

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

Asked = TypeVar("Asked", GenerationRequest, ScoreRequest)
Answer = TypeVar("Answer")

_GENERATIONS = TypeAdapter(list[Generation])
_SCORED = TypeAdapter(Scored)


class KeptReader:
    """A reader behind a cache. It draws more samples and branches where the reader it wraps can,
    else these are None; branches are not kept. Threads may share it."""

    def __init__(self, reader: Reader, cache: AnswerCache) -> None:
        self.name = reader.name
        self._reader = reader
        self._cache = cache
        self.more = self._more if callable(getattr(reader, "more", None)) else None
        self.branch = getattr(reader, "branch", None)

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        """Continuations of each request; see the port."""
        return self._generations(requests, 0, self._reader.generate)

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Likelihoods of given continuations; see the port."""
        keys = [self._key("score", request) for request in requests]
        found = self._answers(keys, requests, self._reader.score, _SCORED)
        return [one.model_copy(update={"usage": Usage()}) if hit else one for one, hit in found]

    def _more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        more: Any = self._reader
        return self._generations(requests, first, lambda new: more.more(new, first=first))

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
        requests: Sequence[Asked],
        ask: Callable[[list[Asked]], list[Answer]],
        form: TypeAdapter[Answer],
    ) -> list[tuple[Answer, bool]]:
        """Each answer and whether it cost nothing. The new ones are asked for in one call, each
        once."""
        kept = self._cache.get(keys)
        known = {key: form.validate_json(text) for key, text in kept.items()}
        new = {key: one for key, one in zip(keys, requests, strict=True) if key not in known}
        paid: set[str] = set()
        if new:
            answers = dict(zip(new, ask(list(new.values())), strict=True))
            self._cache.put({key: form.dump_json(one).decode() for key, one in answers.items()})
            known |= answers
            paid = set(new)
        found = []
        for key in keys:
            found.append((known[key], key not in paid))
            paid.discard(key)  # the same again is free
        return found

    def _key(self, kind: str, request: GenerationRequest | ScoreRequest) -> str:
        # A request without a given thought has the key that it had before there were any.
        told = request.model_dump(mode="json", exclude={"prompt": {"shown"}}, exclude_none=True)
        return digest(kind, self.name, json.dumps(told, sort_keys=True))
