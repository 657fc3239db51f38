"""One unfinished sample, and the rules for its end.

If the reader thinks, a thought comes first. Stop strings and `max_tokens` apply after it; at its
own limit, forced tokens end it instead of sampled ones.
"""

import copy
from collections import deque
from typing import Any

from hopscope.runtime.generation.sampling import stream_key
from hopscope.runtime.generation.texts.text_stream import CONTEXT, TextStream
from hopscope.runtime.texts.continuation import first_sentence_settled
from hopscope.runtime.thinking.marks import SEPARATORS, Marks, Opening, Watch
from hopscope.runtime.types import (
    FinishReason,
    Generation,
    GenerationRequest,
    Thought,
    ThoughtEnd,
    Usage,
)


class Draft:
    """A sample of a request: its tokens so far and the sampling of the next. The sample with index
    `first` carries the prompt's usage."""

    def __init__(
        self,
        request: GenerationRequest,
        index: int,
        prompt_ids: list[int],
        *,
        first: int = 0,
        tokenizer: Any,
        end_ids: frozenset[int],
        opening: Opening | None = None,
        continues: bool = True,
    ) -> None:
        """`continues`: the text follows the prompt's; else it is spelled as one of its own."""
        self.temperature = request.temperature
        self.stream = stream_key(request.seed, prompt_ids, index)
        self.steps = 0
        """Tokens generated, the end token and those after a stop string included."""
        self.finished: FinishReason | None = None
        self.given: deque[int] = deque()
        """Forced tokens, which come next instead of sampled ones."""
        self._max_tokens = request.max_tokens
        self._answered = 0
        """Tokens of the answer so far, the end token and those after a stop string included."""
        self._tokenizer = tokenizer
        self._prompt_ids = prompt_ids
        self._opening = opening
        self._watch: Watch | None = None
        """Follows the reply until the answer begins; then None."""
        if opening is not None:
            self._watch = Watch(opening)
            self._raw = TextStream(tokenizer, prompt_ids, special=True)
        self._held: list[tuple[int, float, float]] = []
        """Tokens that may still turn out to be part of the answer."""
        self._thought = ""
        self._thought_end: ThoughtEnd | None = None
        self._before = 0
        """Tokens before the answer."""
        self._separating = 0
        """Number of further tokens that may only separate thought and answer."""
        self._first = index == first
        self._prompt_tokens = len(prompt_ids)
        self._stop = tuple(filter(None, request.stop))
        self._longest_stop = max(map(len, request.stop), default=0)
        self._keeps = request.keeps
        self._end_ids = end_ids
        self._spelling = TextStream(tokenizer, prompt_ids if continues else [])
        self._text = ""
        self._pieces: list[str] = []
        self._ids: list[int] = []
        self._logprobs: list[float] = []
        self._entropies: list[float] = []
        self._end_logprob: float | None = None

    @property
    def left(self) -> int:
        """Most tokens that the sample may still add."""
        answer = self._max_tokens - self._answered
        if self._watch is None or self._opening is None:
            return answer + self._separating + len(self.given)
        return answer + max(1, self._opening.room - self._before)

    @property
    def thought_limit(self) -> int:
        """Most tokens of the thought; 0 if there can be none."""
        return self._opening.limit if self._opening is not None else 0

    def fork(self) -> "Draft":
        """An independent copy; only for a sample without a thought."""
        twin = copy.copy(self)
        twin._spelling = self._spelling.fork()
        twin._pieces, twin._ids = list(self._pieces), list(self._ids)
        twin._logprobs, twin._entropies = list(self._logprobs), list(self._entropies)
        return twin

    def add(self, token: int, logprob: float, entropy: float) -> int:
        """Add the next token; sets `finished` if it is the last. Returns the token to continue
        from: an end token within a thought is replaced by the thought's closing tokens."""
        thinking = self._watch.within if self._watch is not None else None
        if thinking is not None and token in self._end_ids and not self.given:
            self._force(thinking)
            token = self.given[0]
        self.steps += 1
        given = bool(self.given)
        if given:
            self.given.popleft()
        if self._watch is not None:
            self._consider(self._watch, token, logprob, entropy, given=given)
        elif given or self._separates(token):
            self._before += 1
            self._prompt_ids = [*self._prompt_ids[-CONTEXT:], token]
            self._spelling = TextStream(self._tokenizer, self._prompt_ids)
        else:
            self._answer(token, logprob, entropy)
        return token

    def _force(self, marks: Marks) -> None:
        """Close the thought by forced tokens."""
        assert self._opening is not None
        place = self._opening.marks.index(marks)
        self.given = deque(self._opening.bridges[place])

    def _consider(
        self, watch: Watch, token: int, logprob: float, entropy: float, *, given: bool
    ) -> None:
        """Add a token before the answer is known to have begun."""
        if token in self._end_ids and not given:
            self._release()
            if self.finished is None:
                self._answer(token, logprob, entropy)
            return
        self._held.append((token, logprob, entropy))
        self._before += 1
        watch.add(self._raw.add(token))
        if watch.answering:
            if watch.within is None:
                self._release()
            else:
                self._close(watch, given=given)
        elif watch.within is not None and not self.given:
            assert self._opening is not None
            if self._before >= self._opening.limit:
                self._force(watch.within)

    def _release(self) -> None:
        """There is no thought: the held tokens begin the answer."""
        held, self._held = self._held, []
        self._watch, self._before = None, 0
        for token, logprob, entropy in held:
            if self.finished is None:
                self._answer(token, logprob, entropy)

    def _close(self, watch: Watch, *, given: bool) -> None:
        """End the thought."""
        self._watch, self._thought = None, watch.thought
        self._thought_end = "forced" if given else "closed"
        self._separating = SEPARATORS
        before = [*self._prompt_ids, *(token for token, _, _ in self._held)]
        self._spelling = TextStream(self._tokenizer, before)
        (token, logprob, entropy), self._held = self._held[-1], []
        if rest := watch.rest.lstrip():  # the mark and the answer share a token
            self._before -= 1
            self._separating = 0
            self._add(token, logprob, entropy, rest)

    def _separates(self, token: int) -> bool:
        """Whether a token only separates a thought from the answer."""
        if not self._separating or token in self._end_ids:
            return False
        text: str = self._tokenizer.decode([token], skip_special_tokens=True)
        self._separating = 0 if text.strip() else self._separating - 1
        return not text.strip()

    def _answer(self, token: int, logprob: float, entropy: float) -> None:
        if token in self._end_ids:
            self._answered += 1
            self._flush()
            if self.finished is None:
                self._end_logprob = logprob
                self.finished = "eos"
            return
        piece = self._spelling.add(token)
        if self._thought_end is not None and not self._text:
            piece = piece.lstrip(
                "\r\n"
            )  # with the stop string "\n" an empty line would be the whole answer
        self._add(token, logprob, entropy, piece)

    def _add(self, token: int, logprob: float, entropy: float, piece: str) -> None:
        self._answered += 1
        self._ids.append(token)
        self._logprobs.append(logprob)
        self._entropies.append(entropy)
        self._pieces.append(piece)
        self._write(piece)
        if self.finished is None and self._answered == self._max_tokens:
            self._flush()
            self.finished = self.finished or "length"

    def generation(self) -> Generation:
        """The finished sample."""
        assert self.finished is not None
        thought = self._thoughts()
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
                thinking_tokens=thought.tokens if thought else 0,
            ),
            thought=thought,
        )

    def _thoughts(self) -> Thought | None:
        if self._watch is not None and self._watch.within is not None:
            return Thought(text=self._watch.thought.strip(), tokens=self.steps, end="open")
        if self._thought_end is None:
            return None
        return Thought(text=self._thought.strip(), tokens=self._before, end=self._thought_end)

    def _write(self, piece: str) -> None:
        self._text += piece
        searched = max(0, len(self._text) - len(piece) - self._longest_stop + 1)
        found = [self._text.find(stop, searched) for stop in self._stop]
        if cut := [position for position in found if position >= 0]:
            self._cut(min(cut))
        elif self._keeps == "first_sentence" and first_sentence_settled(self._text):
            self.finished = "stop"

    def _flush(self) -> None:
        """Add an unfinished character to the text; it belongs to the last token."""
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
        if kept == 0:  # the token of the stop string has the only likelihood
            self._end_logprob = self._logprobs[0]
        for sequence in (self._pieces, self._ids, self._logprobs, self._entropies):
            del sequence[kept:]
