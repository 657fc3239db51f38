"""The reader over a loaded transformers model: requests in, records out."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from hopscope.runtime.distinct import each_once
from hopscope.runtime.errors import ContextOverflow, NotOffered, ReaderError
from hopscope.runtime.ports import Branch, BranchRequest
from hopscope.runtime.readers._batches import in_batches, must_be_alone
from hopscope.runtime.readers._decoding import Decoder, Given, Likelihood
from hopscope.runtime.readers._draft import Draft
from hopscope.runtime.readers._habit import Habit
from hopscope.runtime.readers._rendering import Renderer
from hopscope.runtime.readers._text import pieces
from hopscope.runtime.readers._thinking import Opening, Thinking
from hopscope.runtime.types import (
    Forwarded,
    Generation,
    GenerationRequest,
    Prompt,
    Scored,
    ScoreRequest,
    Usage,
)

LOGITS_PER_POSITION = 16_384
"""Logits that take up as much of a batch as one position: scoring keeps a whole vocabulary of them
for each scored token."""


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
    ) -> None:
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

    @property
    def forwarded(self) -> Forwarded:
        """What went through the model since it was loaded."""
        return self._decoder.forwarded

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        """Continuations of each request; see the port. Equal prompts are computed once."""
        return self.more(requests, first=0)

    def more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        """Samples from the `first` on; see the port. The prompt is counted again."""
        with self._computing():
            return each_once(requests, lambda distinct: self._written(distinct, first))

    def _written(self, requests: Sequence[GenerationRequest], first: int) -> list[list[Generation]]:
        drafts: list[list[Draft]] = []
        by_prompt: dict[tuple[int, ...], list[Draft]] = {}
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
        work = [(list(prompt), samples) for prompt, samples in by_prompt.items()]
        self._decoder.decode(work)
        return [[draft.generation() for draft in samples] for samples in drafts]

    @property
    def habit(self) -> Habit:
        """Whether and how it thinks."""
        return self._renderer.habit

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Likelihoods of given continuations; see the port. Equal ones are computed once.

        A continuation of running text gets the space before it that the caller left out.
        """
        nothing = Scored(tokens=(), token_ids=(), logprobs=(), entropies=())
        weight = 1 + self._vocabulary // LOGITS_PER_POSITION
        with self._computing():
            work = [self._given(request) for request in requests]
            found = in_batches(
                [each for each in work if each.continuation],
                self._decoder.score,
                width=lambda each: len(each.prompt) + len(each.continuation) * weight,
                area=self._max_batch_tokens,
            )
            likelihoods = iter(found)
            return [
                self._scored(each, next(likelihoods)) if each.continuation else nothing
                for each in work
            ]

    def branch(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
        """All ways in which begun replies can go on; see the port. Equal ones are computed once."""
        with self._computing():
            return each_once(requests, self._followed)

    def _followed(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
        prompts: dict[tuple[Prompt, str | None], list[int]] = {}
        members: dict[tuple[int, ...], list[int]] = {}
        for i, (request, begun, _) in enumerate(requests):
            asked = request.prompt, request.thought
            if asked not in prompts:
                if self.habit.awaits_thought(request):
                    raise NotOffered(
                        f"{self.name}: replies that begin with a thought cannot be enumerated"
                    )
                prompts[asked] = self._prompt_ids(*asked)
            prompt = prompts[asked]
            self._check([*prompt, *begun], max(0, request.max_tokens - len(begun)))
            members.setdefault(tuple(prompt), []).append(i)
        found: dict[int, list[Branch]] = {}
        for ids, places in members.items():
            after = self._decoder.follow(list(ids), [requests[i].token_ids for i in places])
            for i, logprobs in zip(places, after, strict=True):
                found[i] = self._branches(requests[i], list(ids), logprobs)
        return [found[i] for i in range(len(requests))]

    @contextmanager
    def _computing(self) -> Iterator[None]:
        with self._lock, torch.inference_mode(), failures(self.name):
            if must_be_alone():  # what is at hand decides how numbers are rounded
                self._decoder.forget()
            yield

    def _branches(self, asked: BranchRequest, prompt: list[int], after: Tensor) -> list[Branch]:
        begun = self._draft(asked.request, 0, prompt)
        for token in asked.token_ids:
            begun.add(token, 0.0, 0.0)
        if begun.finished is not None:
            raise ReaderError(f"{self.name}: a reply that has ended cannot go on")
        logprobs, tokens = after.sort(descending=True, stable=True)
        probabilities = logprobs.exp()
        count = int(((probabilities >= asked.least) & (probabilities > 0)).sum())
        branches = []
        for token, logprob in zip(tokens[:count].tolist(), logprobs[:count].tolist(), strict=True):
            draft = begun.fork()
            draft.add(token, logprob, 0.0)
            text = None if draft.finished is None else draft.generation().text
            branches.append(Branch(token, logprob, text))
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

    def _given(self, request: ScoreRequest) -> Given:
        prompt = self._prompt_ids(request.prompt, request.thought or "")
        given = list(request.token_ids) or self._renderer.continuation_ids(
            request.prompt, request.continuation
        )
        self._check([*prompt, *given], 0)
        return Given(tuple(prompt), tuple(given))

    def _scored(self, given: Given, likelihood: Likelihood) -> Scored:
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
                raise ContextOverflow(self.name, fewest, 0, self._context, at_least=True)
        return self._renderer.prompt_ids(prompt, thought)

    def _check(self, ids: list[int], reserved: int) -> None:
        if not ids:
            raise ReaderError(f"{self.name}: a prompt without any token")
        if self._context is not None and len(ids) + reserved > self._context:
            raise ContextOverflow(self.name, len(ids), reserved, self._context)
        if not 0 <= min(ids) <= max(ids) < self._vocabulary:
            raise ReaderError(
                f"{self.name}: token {max(ids)} is not among the model's {self._vocabulary}; "
                "tokenizer and weights do not belong together"
            )


def end_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """Every token that ends a text: chat models often have one for the turn besides."""
    ends: set[int] = set()
    for source in (model.generation_config, model.config, tokenizer):
        value = getattr(source, "eos_token_id", None)
        ends.update([value] if isinstance(value, int) else value or ())
    return frozenset(ends)


@contextmanager
def failures(name: str) -> Iterator[None]:
    """Turn what torch and transformers raise while computing into our error."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise ReaderError(f"{name}: out of memory; lower max_batch_tokens") from error
    except (RuntimeError, ValueError, IndexError) as error:
        raise ReaderError(f"{name}: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """What an error says, without the advice and dumps that libraries append."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
