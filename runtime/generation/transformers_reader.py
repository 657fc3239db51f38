"""The reader over a loaded transformers model: requests in, records out."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from hopscope.runtime.distinct import each_once
from hopscope.runtime.errors import CapabilityError, ContextOverflowError, ReaderError, first_line
from hopscope.runtime.generation.decoding import Decoder, Likelihood, ScoringItem
from hopscope.runtime.generation.draft import Draft
from hopscope.runtime.generation.ongoing import Ongoing
from hopscope.runtime.generation.prefixes import Tokens
from hopscope.runtime.generation.rows import Row
from hopscope.runtime.generation.texts.rendering import Renderer
from hopscope.runtime.generation.texts.text_stream import pieces
from hopscope.runtime.models import devices
from hopscope.runtime.models.batches import in_batches, must_be_alone
from hopscope.runtime.ports import Branch, BranchRequest, OngoingGeneration
from hopscope.runtime.thinking.habit import Habit
from hopscope.runtime.thinking.marks import Opening, Thinking
from hopscope.runtime.types import (
    ForwardCounts,
    Generation,
    GenerationRequest,
    Prompt,
    Scored,
    ScoreRequest,
    Usage,
)

LONG_PROMPT = 4_096
"""Tokens of a long prompt with its passages, if the model's context is even longer."""
LOGITS_PER_POSITION = 16_384
"""Number of logits that take as much memory as one position: scoring keeps a whole vocabulary of
them for each scored token."""


class TransformersReader:
    """A causal language model. Threads may share it; one computes at a time."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str,
        max_batch_tokens: int,
        prefix_bytes: int,
        thinking: Thinking = "auto",
        guard: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """`guard` is entered for each computation."""
        config = model.config.get_text_config()
        self._tokenizer = tokenizer
        self._end_ids = end_ids(model, tokenizer)
        self._vocabulary: int = config.vocab_size
        self._context: int | None = getattr(config, "max_position_embeddings", None)
        self._max_batch_tokens = max_batch_tokens
        self._renderer = Renderer(tokenizer, name, self._end_ids, thinking)
        self.name = name + self._renderer.habit.suffix
        self._decoder = Decoder(model, max_batch_tokens, prefix_bytes)
        self._lock = threading.Lock()
        self._guard = guard

    @property
    def forwarded(self) -> ForwardCounts:
        """The forward passes since the model was loaded."""
        return self._decoder.forwarded

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        """Continuations of each request; see the port. Equal prompts are computed once."""
        return self.more(requests, first=0)

    def more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        """Samples from `first` on; see the port. The prompt is counted again."""
        with self._computing():
            return each_once(requests, lambda distinct: self._written(distinct, first))

    def ongoing(self) -> OngoingGeneration:
        """Generation that calls may join at any time; see the port."""
        return Ongoing(self._decoder.running(), self._drafted, self._computing)

    def rows_in(self, free_bytes: int | None, *, share: int) -> int | None:
        """Number of long prompts whose keys and values the memory holds; see the port."""
        if free_bytes is None:
            free_bytes = devices.free_bytes(str(self._decoder.device))
        if free_bytes is None:
            return None
        longest = min(self._context or LONG_PROMPT, LONG_PROMPT)
        return int(free_bytes // share // (self._decoder.token_bytes * longest))

    def _written(self, requests: Sequence[GenerationRequest], first: int) -> list[list[Generation]]:
        drafts, rows = self._drafted(requests, first)
        self._decoder.decode(rows)
        return [[draft.generation() for draft in samples] for samples in drafts]

    def _drafted(
        self, requests: Sequence[GenerationRequest], first: int
    ) -> tuple[list[list[Draft]], list[Row]]:
        """The unwritten samples of each request, and the rows that complete them: one for each
        prompt."""
        drafts: list[list[Draft]] = []
        by_prompt: dict[Tokens, list[Draft]] = {}
        for request in requests:
            prompt = self._prompt_ids(request.prompt, request.thought)
            opening = self._renderer.opening(request, prompt, self._context)
            self._check(prompt, request.max_tokens + (opening.room if opening else 0))
            samples = [
                self._draft(request, i, prompt, first=first, opening=opening)
                for i in range(first, first + request.n)
            ]
            drafts.append(samples)
            by_prompt.setdefault(tuple(prompt), []).extend(samples)
        return drafts, [Row(prompt, samples) for prompt, samples in by_prompt.items()]

    def prompt_ids(self, request: GenerationRequest) -> tuple[int, ...]:
        """The tokens of the request's prompt; see the port."""
        return tuple(self._renderer.prompt_ids(request.prompt, request.thought))

    def reusable(self, ids: tuple[int, ...], earlier: tuple[int, ...]) -> int:
        """The tokens of a prompt that need not be read again after an earlier one; see the port."""
        return 0 if must_be_alone() else self._decoder.reusable(ids, earlier)

    @property
    def habit(self) -> Habit:
        """Whether and how the model thinks."""
        return self._renderer.habit

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Likelihoods of given continuations; see the port. Equal ones are computed once.

        A continuation of plain text gets a leading space if the caller left it out.
        """
        nothing = Scored(tokens=(), token_ids=(), logprobs=(), entropies=())
        weight = 1 + self._vocabulary // LOGITS_PER_POSITION
        with self._computing():
            work = [self._given(request) for request in requests]
            results = in_batches(
                [each for each in work if each.continuation],
                self._decoder.score,
                width=lambda each: len(each.prompt) + len(each.continuation) * weight,
                area=self._max_batch_tokens,
            )
            likelihoods = iter(results)
            return [
                self._scored(each, next(likelihoods)) if each.continuation else nothing
                for each in work
            ]

    def branch(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
        """All continuations of each reply by one token; see the port. Equal requests are computed
        once."""
        with self._computing():
            return each_once(requests, self._followed)

    def _followed(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
        prompts: dict[tuple[Prompt, str | None], list[int]] = {}
        members: dict[tuple[int, ...], list[int]] = {}
        for i, (request, begun, _) in enumerate(requests):
            key = request.prompt, request.thought
            if key not in prompts:
                if self.habit.awaits_thought(request):
                    raise CapabilityError(
                        f"{self.name}: replies that begin with a thought cannot be enumerated"
                    )
                prompts[key] = self._prompt_ids(*key)
            prompt = prompts[key]
            self._check([*prompt, *begun], max(0, request.max_tokens - len(begun)))
            members.setdefault(tuple(prompt), []).append(i)
        branches: dict[int, list[Branch]] = {}
        for ids, places in members.items():
            after = self._decoder.follow(list(ids), [requests[i].token_ids for i in places])
            for i, logprobs in zip(places, after, strict=True):
                branches[i] = self._branches(requests[i], list(ids), logprobs)
        return [branches[i] for i in range(len(requests))]

    @contextmanager
    def _computing(self) -> Iterator[None]:
        with self._lock, self._guard(), torch.inference_mode(), failures(self.name):
            if must_be_alone():  # the cached part decides how numbers are rounded
                self._decoder.forget()
            yield

    def _branches(self, request: BranchRequest, prompt: list[int], after: Tensor) -> list[Branch]:
        begun = self._draft(request.request, 0, prompt)
        for token in request.token_ids:
            begun.add(token, 0.0, 0.0)
        if begun.finished is not None:
            raise ReaderError(f"{self.name}: a reply that has ended cannot continue")
        logprobs, tokens = after.sort(descending=True, stable=True)
        probabilities = logprobs.exp()
        count = int(((probabilities >= request.least) & (probabilities > 0)).sum())
        branches = []
        for token, logprob in zip(tokens[:count].tolist(), logprobs[:count].tolist(), strict=True):
            draft = begun.fork()
            draft.add(token, logprob, 0.0)
            text = None if draft.finished is None else draft.generation().text
            branches.append(Branch(token, logprob, text, cut=draft.finished == "length"))
        return branches

    def _draft(
        self,
        request: GenerationRequest,
        index: int,
        prompt: list[int],
        *,
        first: int = 0,
        opening: Opening | None = None,
    ) -> Draft:
        return Draft(
            request,
            index,
            prompt,
            first=first,
            tokenizer=self._tokenizer,
            end_ids=self._end_ids,
            opening=opening,
        )

    def _given(self, request: ScoreRequest) -> ScoringItem:
        prompt = self._prompt_ids(request.prompt, request.thought or "")
        given = list(request.token_ids) or self._renderer.continuation_ids(
            request.prompt, request.continuation
        )
        self._check([*prompt, *given], 0)
        return ScoringItem(tuple(prompt), tuple(given))

    def _scored(self, given: ScoringItem, likelihood: Likelihood) -> Scored:
        return Scored(
            tokens=tuple(pieces(self._tokenizer, list(given.prompt), list(given.continuation))),
            token_ids=given.continuation,
            logprobs=tuple(likelihood.logprobs),
            entropies=tuple(likelihood.entropies),
            usage=Usage(input_tokens=len(given.prompt) + len(given.continuation), calls=1),
        )

    def _prompt_ids(self, prompt: Prompt, thought: str | None = None) -> list[int]:
        if self._context is not None:
            fewest = self._renderer.fewest(prompt, self._context)
            if fewest > self._context:
                raise ContextOverflowError(self.name, fewest, 0, self._context, at_least=True)
        return self._renderer.prompt_ids(prompt, thought)

    def _check(self, ids: list[int], reserved: int) -> None:
        if not ids:
            raise ReaderError(f"{self.name}: the prompt has no token; give it a text")
        if self._context is not None and len(ids) + reserved > self._context:
            raise ContextOverflowError(self.name, len(ids), reserved, self._context)
        if not 0 <= min(ids) <= max(ids) < self._vocabulary:
            raise ReaderError(
                f"{self.name}: token {max(ids)} is not among the model's {self._vocabulary}; "
                "tokenizer and weights do not belong together"
            )


def end_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """All tokens that end a text; chat models often have another one that ends a turn."""
    ends: set[int] = set()
    for source in (getattr(model, "generation_config", None), model.config, tokenizer):
        value = getattr(source, "eos_token_id", None)
        ends.update([value] if isinstance(value, int) else value or ())
    return frozenset(ends)


@contextmanager
def failures(name: str) -> Iterator[None]:
    """Turn errors of torch and transformers while computing into a ReaderError."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise ReaderError(f"{name}: out of memory; lower max_batch_tokens") from error
    except (RuntimeError, ValueError, IndexError) as error:
        raise ReaderError(f"{name}: {first_line(error)}") from error
