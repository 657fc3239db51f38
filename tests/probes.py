"""A reader that behaves like a real one but says what a test tells it: words are its tokens, it
obeys stop strings and token limits, it knows how sure it is of each word, and it counts."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from math import log

from hopscope.runtime.types import (
    FinishReason,
    Generation,
    GenerationRequest,
    Scored,
    ScoreRequest,
    Usage,
)

Say = Callable[[GenerationRequest], str]
SURE, UNSURE = 0.95, 0.3


def script(replies: Iterable[str]) -> Say:
    """One reply after the other, for each sample one; raises when there is none left."""
    left = iter(replies)

    def say(request: GenerationRequest) -> str:
        reply = next(left, None)
        if reply is None:
            raise AssertionError("the script has no reply left")
        return reply

    return say


def task(request: GenerationRequest) -> str:
    """The last message of a request: the question and what to do."""
    return request.prompt.messages[-1].content


class Speaker:
    """Says what `say` returns. `unsure` are the words it gives the probability UNSURE."""

    name = "speaker"

    def __init__(self, say: Say, *, unsure: Collection[str] = (), logprobs: bool = True) -> None:
        self._say = say
        self._unsure = unsure
        self._logprobs = logprobs
        self.requests: list[GenerationRequest] = []
        self.spent = Usage()
        """Its own count of everything it was asked."""

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        self.requests.extend(requests)
        return [[self._speak(r, first=i == 0) for i in range(r.n)] for r in requests]

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        raise AssertionError("workflows do not score")

    def _speak(self, request: GenerationRequest, *, first: bool) -> Generation:
        text, finish = self._say(request), "eos"
        ends = [text.find(stop) for stop in request.stop if stop in text]
        if ends:
            text, finish = text[: min(ends)], "stop"
        tokens = re.findall(r"\s*\S+|\s+\Z", text)
        if len(tokens) > request.max_tokens:
            tokens, finish = tokens[: request.max_tokens], "length"
        usage = Usage(
            input_tokens=len(request.prompt.text.split()) if first else 0,
            output_tokens=len(tokens) + (finish == "eos"),
            calls=1 if first else 0,
        )
        self.spent += usage
        chances = [UNSURE if token.strip(" .,?\n") in self._unsure else SURE for token in tokens]
        reason: FinishReason = finish  # type: ignore[assignment]  # one of the three
        return Generation(
            text="".join(tokens),
            tokens=tuple(tokens) if self._logprobs else (),
            logprobs=tuple(map(log, chances)) if self._logprobs else (),
            finish_reason=reason,
            usage=usage,
        )
