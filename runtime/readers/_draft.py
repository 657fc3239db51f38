"""One sample while it is being written, and the rules for when it ends."""

import copy
from typing import Any

from hopscope.runtime.readers._sampling import stream_key
from hopscope.runtime.readers._text import TextStream
from hopscope.runtime.types import FinishReason, Generation, GenerationRequest, Usage


class Draft:
    """A sample of a request: what it has so far and how its next token is drawn. The usage of
    the prompt stands on the sample with index `first`."""

    def __init__(
        self,
        request: GenerationRequest,
        index: int,
        prompt_ids: list[int],
        *,
        first: int = 0,
        tokenizer: Any,
        end_ids: frozenset[int],
    ) -> None:
        self.temperature = request.temperature
        self.max_tokens = request.max_tokens
        self.stream = stream_key(request.seed, prompt_ids, index)
        self.steps = 0
        """Tokens generated, the end token and those after a stop string included."""
        self.finished: FinishReason | None = None
        self._first = index == first
        self._prompt_tokens = len(prompt_ids)
        self._stop = tuple(filter(None, request.stop))
        self._longest_stop = max(map(len, request.stop), default=0)
        self._end_ids = end_ids
        self._spelling = TextStream(tokenizer, prompt_ids)
        self._text = ""
        self._pieces: list[str] = []
        self._ids: list[int] = []
        self._logprobs: list[float] = []
        self._entropies: list[float] = []
        self._end_logprob: float | None = None

    def fork(self) -> "Draft":
        """A copy that goes on by itself."""
        twin = copy.copy(self)
        twin._spelling = self._spelling.fork()
        twin._pieces, twin._ids = list(self._pieces), list(self._ids)
        twin._logprobs, twin._entropies = list(self._logprobs), list(self._entropies)
        return twin

    def add(self, token: int, logprob: float, entropy: float) -> None:
        """Take the next token; sets `finished` when it is the last."""
        self.steps += 1
        if token in self._end_ids:
            self._flush()
            if self.finished is None:
                self._end_logprob = logprob
                self.finished = "eos"
            return
        self._ids.append(token)
        self._logprobs.append(logprob)
        self._entropies.append(entropy)
        piece = self._spelling.add(token)
        self._pieces.append(piece)
        self._write(piece)
        if self.finished is None and self.steps == self.max_tokens:
            self._flush()
            self.finished = self.finished or "length"

    def generation(self) -> Generation:
        """The finished sample."""
        assert self.finished is not None
        return Generation(
            text=self._text,
            tokens=tuple(self._pieces),
            token_ids=tuple(self._ids),
            logprobs=tuple(self._logprobs),
            entropies=tuple(self._entropies),
            end_logprob=self._end_logprob,
            finish_reason=self.finished,
            usage=Usage(
                input_tokens=self._prompt_tokens if self._first else 0,
                output_tokens=self.steps,
                calls=1 if self._first else 0,
            ),
        )

    def _write(self, piece: str) -> None:
        self._text += piece
        searched = max(0, len(self._text) - len(piece) - self._longest_stop + 1)
        found = [self._text.find(stop, searched) for stop in self._stop]
        if cut := [position for position in found if position >= 0]:
            self._cut(min(cut))

    def _flush(self) -> None:
        """Write out an unfinished character; it belongs to the last token."""
        if self._pieces:
            rest = self._spelling.finish()
            self._pieces[-1] += rest
            self._write(rest)

    def _cut(self, end: int) -> None:
        """End the text before the stop string and drop the tokens that begin after it."""
        self.finished = "stop"
        self._text = self._text[:end]
        start = kept = 0
        while kept < len(self._pieces) and start < end:
            start += len(self._pieces[kept])
            kept += 1
        if kept == 0:  # the token that wrote the stop string is all the likelihood there is
            self._end_logprob = self._logprobs[0]
        for sequence in (self._pieces, self._ids, self._logprobs, self._entropies):
            del sequence[kept:]
