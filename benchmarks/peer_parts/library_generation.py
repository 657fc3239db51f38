"""Generation by transformers itself: continuous batching over a paged cache, and `generate`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Any, NamedTuple

import torch
import transformers
from transformers import GenerationConfig
from transformers.utils import logging

from hopscope.runtime.types import GenerationRequest
from peer_parts.batching_jobs import Job, Replies, Reply
from peer_parts.rounds import PeerMissingError

PAD = 0
NO_END = -1
"""An end token that is never drawn."""


def imported() -> Any:
    """The class of the settings of continuous batching.

    Raises:
        PeerMissingError: this transformers has none.
    """
    try:
        return transformers.ContinuousBatchingConfig
    except AttributeError as error:
        raise PeerMissingError("this transformers has no ContinuousBatchingConfig") from error


class Paged(NamedTuple):
    """Settings of transformers' continuous batching."""

    page: int = 32
    """Tokens of a page; only whole pages are shared. The library's default is 256."""
    tokens: int = 256
    """Most tokens of a pass. The library's default is 8,192."""
    requests: int = 16
    """Most rows of a pass. The library's default is 1,024."""
    sharing: bool = True
    """Whether pages with the same beginning are computed once."""

    def replies(self, model: Any, job: Job) -> Replies:
        """All replies, of requests that are handed over at once."""
        prompts, requests = job.prompts, job.requests
        config = imported()(
            page_size=self.page,
            max_batch_tokens=self.tokens,
            max_requests_per_batch=self.requests,
            num_blocks=self._blocks(prompts, requests),
            allow_block_sharing=self.sharing,
            return_logprobs=True,
            seed=0,
        )
        options = _options(requests, eos_token_id=NO_END)
        outputs: dict[str, Any] = {}
        with model.continuous_batching_context_manager(
            generation_config=options, continuous_batching_config=config
        ) as manager:
            # Neighbours share most, as in the library's own `generate_batch`.
            for place in sorted(range(len(prompts)), key=lambda i: prompts[i], reverse=True):
                length = requests[place].max_tokens
                manager.add_request(prompts[place], request_id=str(place), max_new_tokens=length)
            while len(outputs) < sum(request.n for request in requests):
                found = manager.get_result(timeout=1)
                if found is not None:
                    outputs[found.request_id] = found
                elif not manager.is_running():
                    raise SystemExit("transformers' continuous batching ended early")
        if errors := [each.error for each in outputs.values() if each.error]:
            raise SystemExit(f"transformers' continuous batching failed: {errors[0]}")
        return [
            [_reply(outputs[name]) for name in _names(str(place), request.n)]
            for place, request in enumerate(requests)
        ]

    def _blocks(self, prompts: Sequence[list[int]], requests: Sequence[GenerationRequest]) -> int:
        """Pages for all rows at once, so that none is evicted, and a fifth more: the library lets
        nothing new in when less than .15 is free."""
        used = sum(
            request.n * ceil((len(prompt) + request.max_tokens) / self.page)
            for prompt, request in zip(prompts, requests, strict=True)
        )
        return ceil(1.2 * used) + 1


def _names(first: str, n: int) -> list[str]:
    """Those of a request's replies: all but the first are children."""
    return [first, *(f"{first}__child#{i}" for i in range(n - 1))]


def _reply(output: Any) -> Reply:
    return Reply(tuple(output.generated_tokens), tuple(output.logprobs))


def _options(requests: Sequence[GenerationRequest], **more: Any) -> GenerationConfig:
    """Plain sampling, or greedy decoding, by the first request."""
    first = requests[0]
    if first.temperature:
        more |= {"do_sample": True, "temperature": first.temperature, "top_k": 0, "top_p": 1.0}
    return GenerationConfig(
        num_return_sequences=first.n,
        max_new_tokens=max(request.max_tokens for request in requests),
        pad_token_id=PAD,
        **more,
    )


class Batches(NamedTuple):
    """Batches of prompts to `generate`, each as long as its longest reply."""

    prompts: int

    def replies(self, model: Any, job: Job) -> Replies:
        """All replies, with log-probabilities of the raw logits."""
        prompts, requests = job.prompts, job.requests
        torch.manual_seed(0)
        return [
            replies
            for at in range(0, len(prompts), self.prompts)
            for replies in _batch(
                model, prompts[at : at + self.prompts], requests[at : at + self.prompts]
            )
        ]


def _batch(
    model: Any, prompts: Sequence[list[int]], requests: Sequence[GenerationRequest]
) -> Iterator[list[Reply]]:
    width, n = max(map(len, prompts)), requests[0].n
    ids = torch.tensor([[PAD] * (width - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    out = model.generate(
        ids,
        attention_mask=mask,
        generation_config=_options(requests),
        return_dict_in_generate=True,
        output_logits=True,
    )
    written = out.sequences[:, width:]
    every = torch.stack(out.logits, dim=1).log_softmax(dim=-1)
    logprobs = every.gather(-1, written[..., None]).squeeze(-1).tolist()
    for place, request in enumerate(requests):
        yield [
            Reply(
                tuple(written[row].tolist()[: request.max_tokens]),
                tuple(logprobs[row][: request.max_tokens]),
            )
            for row in range(place * n, (place + 1) * n)
        ]


@contextmanager
def quiet() -> Iterator[None]:
    """Without transformers' warnings about settings that are meant."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)
