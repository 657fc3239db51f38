"""The reader over a loaded model: requests in, records out."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from hopscope.runtime.distinct import each_once
from hopscope.runtime.errors import CapabilityError, ReaderError, UsageError
from hopscope.runtime.generation.decoding import Likelihood
from hopscope.runtime.generation.draft import Draft
from hopscope.runtime.generation.texts.defusing import Defuser
from hopscope.runtime.generation.texts.text_stream import pieces
from hopscope.runtime.generation.transformers_reader import end_ids, failures
from hopscope.runtime.readers.fid._fusion import Fusion, GivenReply, Inputs, Unwritten
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Prompt,
    Scored,
    ScoreRequest,
    Usage,
)


class FiDReader:
    """An encoder-decoder that reads each message of a prompt alone and writes from all of them.
    Threads may share it; one computes at a time."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str,
        passage_tokens: int | None,
        max_batch_tokens: int,
    ) -> None:
        """
        Raises:
            UsageError: the configuration names no token that the decoder begins with.
        """
        self.name = name
        self._tokenizer = tokenizer
        self._passage_tokens = passage_tokens
        self._end_ids = end_ids(model, tokenizer)
        self._vocabulary: int = model.config.vocab_size
        self._fusion = Fusion(model, _start(model, name), max_batch_tokens)
        self._defuse = Defuser(tokenizer, name).defuse
        self._lock = threading.Lock()

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        """Continuations of each request; see the port. Equal prompts are computed once."""
        return self.more(requests, first=0)

    def more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        """Samples from `first` on; see the port. The prompt is counted again."""
        with self._computing():
            return each_once(requests, lambda distinct: self._written(distinct, first))

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Likelihoods of given replies; see the port. Equal ones are computed once."""
        nothing = Scored(tokens=(), token_ids=(), logprobs=(), entropies=())
        with self._computing():
            work = [self._given(request) for request in requests]
            likelihoods = iter(self._fusion.score([each for each in work if each.reply]))
            return [
                self._scored(each, next(likelihoods)) if each.reply else nothing for each in work
            ]

    def _written(self, requests: Sequence[GenerationRequest], first: int) -> list[list[Generation]]:
        drafts: list[list[Draft]] = []
        by_inputs: dict[Inputs, list[Draft]] = {}
        for request in requests:
            inputs = self._inputs(request.prompt, request.thought)
            samples = [
                Draft(
                    request,
                    index,
                    [token for ids in inputs for token in ids],
                    first=first,
                    tokenizer=self._tokenizer,
                    end_ids=self._end_ids,
                    continues=False,
                )
                for index in range(first, first + request.n)
            ]
            drafts.append(samples)
            by_inputs.setdefault(inputs, []).extend(samples)
        self._fusion.decode([Unwritten(inputs, own) for inputs, own in by_inputs.items()])
        return [[draft.generation() for draft in samples] for samples in drafts]

    @contextmanager
    def _computing(self) -> Iterator[None]:
        with self._lock, torch.inference_mode(), failures(self.name):
            yield

    def _given(self, request: ScoreRequest) -> GivenReply:
        inputs = self._inputs(request.prompt, request.thought)
        reply = request.token_ids or tuple(
            self._tokenizer(request.continuation, add_special_tokens=False, verbose=False).input_ids
        )
        self._check(reply)
        return GivenReply(inputs, reply)

    def _scored(self, given: GivenReply, likelihood: Likelihood) -> Scored:
        read = sum(map(len, given.inputs))
        return Scored(
            tokens=tuple(pieces(self._tokenizer, [], list(given.reply))),
            token_ids=given.reply,
            logprobs=tuple(likelihood.logprobs),
            entropies=tuple(likelihood.entropies),
            usage=Usage(input_tokens=read + len(given.reply), calls=1),
        )

    def _inputs(self, prompt: Prompt, thought: str | None) -> Inputs:
        """The tokens of each message.

        Raises:
            CapabilityError: the prompt is a conversation, or holds a begun reply or a thought.
            ReaderError: a message has no token, or one that the model does not know.
        """
        others = [message.role for message in prompt.messages if message.role != "user"]
        if others or prompt.prefix or not prompt.messages:
            what = f"a message of the role {others[0]}" if others else "a begun reply"
            raise CapabilityError(
                f"{self.name} reads each passage alone, as a message of the user, and this prompt "
                f"has {what if prompt.messages else 'no message'}: take the workflow naive or "
                "closed_book with the set of prompts fid (--prompts fid, -o METER.prompts=fid); "
                "other workflows need a causal model, as in hf:FOLDER"
            )
        if thought:
            raise CapabilityError(
                f"{self.name} does not think, so it cannot continue a given thought"
            )
        return tuple(self._input(message.content) for message in prompt.messages)

    def _input(self, text: str) -> tuple[int, ...]:
        ids: list[int] = self._tokenizer(self._defuse(text), verbose=False).input_ids
        if not ids:
            raise ReaderError(f"{self.name}: a message has no token; give it a text")
        if self._passage_tokens is not None and len(ids) > self._passage_tokens:
            end = ids[-1:] if ids[-1] in self._end_ids else []
            ids = ids[: self._passage_tokens - len(end)] + end
        self._check(tuple(ids))
        return tuple(ids)

    def _check(self, ids: tuple[int, ...]) -> None:
        if ids and not 0 <= min(ids) <= max(ids) < self._vocabulary:
            raise ReaderError(
                f"{self.name}: token {max(ids)} is not among the model's {self._vocabulary}; "
                "tokenizer and weights do not belong together"
            )


def _start(model: Any, name: str) -> int:
    """The token that the decoder begins with."""
    for source in (model.generation_config, model.config):
        start = getattr(source, "decoder_start_token_id", None)
        if isinstance(start, int):
            return start
    raise UsageError(
        f"{name}: its configuration names no token that the decoder begins with; add "
        "decoder_start_token_id to config.json (0 in T5)"
    )
