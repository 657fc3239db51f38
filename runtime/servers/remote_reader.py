"""The reader over a server of OpenAI's API: requests in, records out.

Sample i of a request has the seed of the request and its prompt, plus i; servers honour it to
different degrees. Log-probabilities are the server's; vLLM and llama.cpp take them from the raw
distribution. Entropies of a truncated distribution are `approx`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from hopscope.runtime.distinct import each_once
from hopscope.runtime.errors import CapabilityError, ContextOverflowError, ReaderError
from hopscope.runtime.servers import reasoning, replies, token_usage
from hopscope.runtime.servers.endpoint import Endpoint, RefusedRequestError, strange
from hopscope.runtime.servers.refused_options import Terms
from hopscope.runtime.servers.replies import CompletionChoice, Token
from hopscope.runtime.servers.wire import Wire
from hopscope.runtime.thinking.marks import Opening
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Scored,
    ScoreRequest,
    Thought,
    ThoughtEnd,
    Usage,
    digest,
)

if TYPE_CHECKING:  # it imports torch
    from hopscope.runtime.generation.vocabularies import Vocabulary

Answer = TypeVar("Answer")
Item = TypeVar("Item")
OVERFLOWS = ("context_length_exceeded", "exceed_context_size_error")
"""OpenAI's and llama.cpp's codes for a prompt that is too long."""
OVERFLOW = "maximum context length"
"""vLLM's message for it, which has no code."""


LEAVE_OUT = (
    "if an option of the request is the reason, leave it out (reader option "
    "omit=temperature+seed, alternatives=none for log-probabilities, server=openai for "
    "max_completion_tokens)"
)
ALLOW_TOOLS = (
    "the request offers tools: start vLLM with --enable-auto-tool-choice and --tool-call-parser, "
    "llama.cpp with --jinja, or take a workflow without tools (search_agent, self_ask)"
)
LEAST_ROOM = 32
"""The least tokens of a useful thought."""


class RemoteReader:
    """A model on a server. Threads may share it; together they send `connections` requests at the
    same time."""

    def __init__(self, wire: Wire, endpoint: Endpoint, terms: Terms, *, connections: int) -> None:
        self.name = wire.name
        self._wire = wire
        self._endpoint = endpoint
        self._terms = terms
        self._thinks = False
        """Whether a reply has had a thought."""
        self._workers = ThreadPoolExecutor(connections, thread_name_prefix="reader")

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        """Continuations of each request; see the port."""
        return self.more(requests, first=0)

    def more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        """Samples from `first` on; see the port. The prompt is sent and counted again; equal
        requests are sent once."""
        return each_once(
            requests,
            lambda distinct: self._all(lambda request: self._samples(request, first), distinct),
        )

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Likelihoods of given continuations; see the port.

        Each token is requested as the next generated one, because some versions of vLLM return
        stale values for the tokens of a prompt. Its prefix cache computes the prompt once.

        Raises:
            CapabilityError: the server returns no probabilities, or the model's tokenizer is
                unknown.
        """
        forces, vocabulary = self._wire.dialect.forces, self._wire.vocabulary
        if forces is None or vocabulary is None or self._wire.alternatives == "none":
            raise CapabilityError(
                f"{self.name} cannot score a given text: that needs a vLLM server, the model's "
                "tokenizer (tokenizer=FOLDER_OR_ID) and log-probabilities"
            )
        work = [vocabulary.given(request) for request in requests]
        for prompt, given in work:
            self._check(len(prompt) + len(given), 0)
        bodies = [
            self._wire.body([*prompt, *given[:at]], max_tokens=1, temperature=0.0)
            | {forces: [token]}
            for prompt, given in work
            for at, token in enumerate(given)
        ]
        next_tokens = iter(self._all(self._next_token, bodies))
        return [
            self._scored(vocabulary, prompt, given, [next(next_tokens) for _ in given])
            for prompt, given in work
        ]

    def _all(self, ask: Callable[[Item], Answer], asked: Iterable[Item]) -> list[Answer]:
        """The answers in order; after a failure no further request is sent."""
        futures = [self._workers.submit(ask, one) for one in asked]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def _samples(self, request: GenerationRequest, first: int) -> list[Generation]:
        vocabulary = self._wire.vocabulary
        if vocabulary and vocabulary.renderer.habit.awaits_thought(request):
            return self._in_two(request, first)
        samples = self._at_once(request, first, thinking=self._expects_thought(request))
        if not isinstance(samples, Usage):
            return samples
        # The model thinks, which was unknown: its replies so far are useless.
        self._thinks = True
        again = self._at_once(request, first, thinking=True)
        assert not isinstance(again, Usage)
        paid = again[0].model_copy(update={"usage": samples + again[0].usage})
        return [paid, *again[1:]]

    def _expects_thought(self, request: GenerationRequest) -> bool:
        """Whether to treat a chat as one that thinks: with tokens for a thought, and without stop
        strings, which most servers would apply to the thought too."""
        if not self._wire.chat or request.prompt.prefix:
            return False
        return self._thinks or self._wire.thinking not in ("auto", "off")

    def _is_thoughtful(self, request: GenerationRequest, usages: Sequence[Usage]) -> bool:
        """Whether a chat that was treated as one without thoughts returned thoughts."""
        may = self._wire.chat and not request.prompt.prefix
        return may and any(usage.thinking_tokens for usage in usages)

    def _in_two(self, request: GenerationRequest, first: int) -> list[Generation]:
        """Samples of thoughts, and an answer after each."""
        vocabulary = self._wire.vocabulary
        assert vocabulary is not None
        habit = vocabulary.renderer.habit
        prompt = self._wire.prompt(request.prompt)
        opening = vocabulary.renderer.opening(request, prompt, self._wire.context)
        assert opening is not None
        self._check(len(prompt), request.max_tokens + opening.room)
        count = 1 if request.temperature == 0 else request.n
        thoughts = request.model_copy(
            update={
                "n": count,
                "max_tokens": opening.limit,
                "stop": tuple(marks.close for marks in habit.marks),
            }
        )
        drawn = self._drawn(prompt, thoughts, first, self._wire.dialect.shows_special)
        answered = []
        for place, (choice, usage) in enumerate(drawn):
            answered.append(self._after(request, first + place, opening, choice, usage))
        copies = [answered[0].model_copy(update={"usage": Usage()})] * (request.n - count)
        return [*answered, *copies]

    def _after(
        self,
        request: GenerationRequest,
        index: int,
        opening: Opening,
        choice: CompletionChoice,
        usage: Usage,
    ) -> Generation:
        """The answer after one thought."""
        text = choice.text.lstrip()
        marks = opening.opened or next(
            (marks for marks in opening.marks if text.startswith(marks.open.rstrip())), None
        )
        one = request.model_copy(update={"n": 1})
        if marks is None and text:  # it did not think: the text is the answer
            prompt = self._wire.prompt(request.prompt)
            [(choice, spent)] = self._drawn(prompt, one, index, {})
            answer = self._wire.generation(prompt, one, choice, spent)
            return answer.model_copy(update={"usage": usage + answer.usage})
        thought = text.removeprefix(marks.open.rstrip()).strip() if marks else ""
        tokens = usage.output_tokens
        usage = usage.model_copy(update={"thinking_tokens": tokens})
        given = one.model_copy(update={"thought": thought})
        prompt = self._wire.prompt(request.prompt, thought)
        [(answered, spent)] = self._drawn(prompt, given, index, {})
        # If the server names stop strings and names no mark, the reader did not close the thought.
        named = choice.stopped_by is not None or not choice.names_stop
        end: ThoughtEnd = "closed" if choice.finish == "stop" and named else "forced"
        record = Thought(text=thought, tokens=tokens, end=end)
        generation = self._wire.generation(prompt, given, answered, spent)
        return generation.model_copy(update={"usage": usage + spent, "thought": record})

    def _drawn(
        self, prompt: Any, request: GenerationRequest, first: int, extra: Mapping[str, Any]
    ) -> list[tuple[CompletionChoice, Usage]]:
        """The requested number of continuations of a prompt."""
        body = self._wire.body(
            prompt, max_tokens=request.max_tokens, temperature=request.temperature
        )
        body |= {"stop": list(request.stop), **extra} if request.stop else extra
        seed = _seed(request) + first
        drawn: list[tuple[CompletionChoice, Usage]] = []
        while len(drawn) < request.n:
            fields = {"n": request.n - len(drawn), "seed": seed + len(drawn)}
            drawn += zip(*self._ask(body | fields), strict=True)
        return drawn[: request.n]

    def _at_once(
        self, request: GenerationRequest, first: int, *, thinking: bool
    ) -> list[Generation] | Usage:
        """Samples, each in one reply; or the usage so far if a thought appears unexpectedly."""
        prompt = self._wire.prompt(request.prompt, request.thought)
        if self._wire.vocabulary:
            self._check(len(prompt), request.max_tokens)
        body = self._wire.body(
            prompt, max_tokens=request.max_tokens, temperature=request.temperature
        )
        body |= self._wire.tools(request.prompt)
        if request.stop and not thinking:
            body["stop"] = list(request.stop)
        ask = self._ask_for_thoughts if thinking else self._ask
        greedy, seed = request.temperature == 0, _seed(request) + first
        samples: list[Generation] = []
        # Some servers return one sample for any n.
        while len(samples) < (1 if greedy else request.n):
            wanted = 1 if greedy else request.n - len(samples)
            choices, usages = ask(body | {"n": wanted, "seed": seed + len(samples)})
            if not thinking and self._is_thoughtful(request, usages):
                return sum([*usages, *(each.usage for each in samples)], Usage())
            with self._understood():
                samples += [
                    self._wire.generation(prompt, request, choice, usage)
                    for choice, usage in zip(choices, usages, strict=True)
                ]
            greedy = greedy and not any("temperature" in choice.refused for choice in choices)
        copies = [samples[0].model_copy(update={"usage": Usage()})] * (request.n - len(samples))
        return [*samples[: request.n], *copies]

    def _ask_for_thoughts(self, body: dict[str, Any]) -> tuple[list[CompletionChoice], list[Usage]]:
        """As `_ask`, with tokens for thoughts; fewer if the context is too small, unless the user
        has set the number."""
        length, room = self._wire.dialect.length, self._wire.limit
        while True:
            try:
                return self._ask({**body, length: body[length] + room})
            except ContextOverflowError:
                if isinstance(self._wire.thinking, int) or room < LEAST_ROOM:
                    raise
                room //= 2

    def _ask(self, body: dict[str, Any]) -> tuple[list[CompletionChoice], list[Usage]]:
        """The continuations of one request, at least one, and the usage of each."""

        def post(sent: dict[str, Any]) -> Any:
            try:
                return self._endpoint.post(self._wire.path, sent)
            except RefusedRequestError as error:
                reserved = body[self._wire.dialect.length]
                raise self._overflow(error, reserved) or error from None

        try:
            answer, refused = self._terms.ask(post, body)
        except RefusedRequestError as error:
            if error.status not in (400, 422):
                raise
            if "tools" in body:
                raise CapabilityError(f"{error}; {ALLOW_TOOLS}") from None
            raise ReaderError(f"{error}; {LEAVE_OUT}") from None
        with self._understood():
            choices = [
                reasoning.parted(choice)._replace(refused=refused)
                for choice in replies.choices(answer)
            ]
            usages = token_usage.usages(answer.get("usage"), choices, body, self._wire.vocabulary)
            thought = reasoning.counts(answer.get("usage"), choices, usages)
            usages = [
                usage.model_copy(update={"thinking_tokens": tokens})
                for usage, tokens in zip(usages, thought, strict=True)
            ]
        if withheld := [c.finish for c in choices if c.finish not in ("stop", "length")]:
            raise ReaderError(f"{self.name} withheld a reply: {self._endpoint.clean(withheld[0])}")
        return choices, usages

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """Turn errors in reading the server's answer into a ReaderError."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise strange(self._wire.where.url) from None

    def _next_token(self, body: dict[str, Any]) -> Token:
        choices, _ = self._ask(body)
        if not choices[0].tokens:
            raise CapabilityError(f"{self.name} returns no log-probabilities")
        return choices[0].tokens[0]

    def _scored(
        self, vocabulary: "Vocabulary", prompt: list[int], given: list[int], tokens: list[Token]
    ) -> Scored:
        if [token.id for token in tokens] != given:
            raise strange(self._wire.where.url)
        entropies, approx = self._wire.entropies(tokens)
        return Scored(
            tokens=tuple(vocabulary.pieces(prompt, given)),
            token_ids=tuple(given),
            logprobs=tuple(token.logprob for token in tokens),
            entropies=entropies,
            usage=Usage(input_tokens=len(prompt) + len(given), calls=1) if given else Usage(),
            approx=approx,
        )

    def _check(self, tokens: int, reserved: int) -> None:
        context = self._wire.context
        if context is not None and tokens + reserved > context:
            raise ContextOverflowError(self.name, tokens, reserved, context)

    def _overflow(self, error: RefusedRequestError, reserved: int) -> ContextOverflowError | None:
        """The error for a prompt that is too long; None if the server reports something else."""
        if error.code not in OVERFLOWS and OVERFLOW not in error.said:
            return None
        numbers = [int(number) for number in re.findall(r"\d+", error.said)]
        context = self._wire.context or next(iter(numbers), 0)
        return ContextOverflowError(self.name, max([*numbers, context + 1]), reserved, context)


def _seed(request: GenerationRequest) -> int:
    """30 bits: every server accepts that, even with the sample number added."""
    return int(digest(str(request.seed), request.prompt.text)[:8], 16) >> 2
