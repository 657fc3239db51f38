"""Decoding all samples together, and teacher forcing.

Invariant: up to rounding, a row's numbers depend neither on the other rows nor on the part of it
that was cached; where rows must be alone, this holds to the last digit. Records come from the raw
logits, before temperature. Samples of a prompt share one row as long as their tokens are equal.
"""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hopscope.runtime.generation.forwarding import Forwarder
from hopscope.runtime.generation.prefill import Prefill, UnreadSequence, after
from hopscope.runtime.generation.prefixes import Tokens
from hopscope.runtime.generation.rows import Row, check_finite, draw_next
from hopscope.runtime.generation.running import RunningRows
from hopscope.runtime.generation.sampling import distribution
from hopscope.runtime.models.batches import must_be_alone
from hopscope.runtime.types import ForwardCounts


class ScoringItem(NamedTuple):
    """A text to score."""

    prompt: Tokens
    continuation: Tokens


class Likelihood(NamedTuple):
    """A given continuation under the model, token by token."""

    logprobs: list[float]
    entropies: list[float]


class Decoder:
    """A causal language model as pure arithmetic on token ids; it knows no text."""

    def __init__(self, model: Any, max_batch_tokens: int, prefix_bytes: int) -> None:
        self._model = model
        self._max_batch_tokens = max_batch_tokens
        self._forwarder = Forwarder(model)
        self._prefill = Prefill(self._forwarder, prefix_bytes)
        self.token_bytes = token_bytes(model)
        """Approximate bytes of the keys and values of one token."""
        self._remembers = self._prefill.tree.limit >= max_batch_tokens * self.token_bytes
        self._running: RunningRows | None = None
        """For `decode`; its memory is used again."""
        self._kept: tuple[list[int], Any, Tensor] | None = None

    @property
    def device(self) -> Any:
        """The device that it computes on."""
        return self._model.device

    @property
    def forwarded(self) -> ForwardCounts:
        """The forward passes so far."""
        return self._forwarder.counted

    def reusable(self, ids: Tokens, earlier: Tokens) -> int:
        """The tokens of a prompt that need not be read again after an earlier one."""
        return self._prefill.reusable(ids, earlier)

    def forget(self) -> None:
        """Drop all cached prefixes, so that the next computation starts afresh."""
        self._prefill.tree.clear()
        self._kept = None

    def decode(self, rows: Sequence[Row]) -> None:
        """Complete all drafts."""
        if must_be_alone():
            for row in rows:
                self._continue_alone(row)
            return
        running = self._running = self._running or self.running()
        try:
            # Where rows are padded, those of similar width together need the least.
            running.add(sorted(rows, key=lambda row: -row.width))
            while running.busy:
                running.step()
        except BaseException:  # an error leaves drafts behind
            self._running = None
            raise

    def running(self) -> RunningRows:
        """Rows to decode, to which others can be added at any time."""
        return RunningRows(
            self._forwarder, self._prefill, area=self._max_batch_tokens, remembers=self._remembers
        )

    def score(self, work: Sequence[ScoringItem]) -> list[Likelihood]:
        """The likelihood of each continuation, of one token or more, after its prompt. A caller
        that needs exact repeatability passes one at a time."""
        places: dict[Tokens, list[int]] = {}
        for i, (prompt, given) in enumerate(work):
            places.setdefault((*prompt, *given[:-1]), []).append(
                i
            )  # nothing follows the last token
        members = list(places.values())
        wanted = [
            UnreadSequence(ids, max(len(work[i].continuation) for i in same))
            for ids, same in places.items()
        ]
        scored: dict[int, Likelihood] = {}
        for made in self._prefill.read(wanted):
            for sequence, logits in zip(made.members, made.logits, strict=True):
                logprobs, entropies = distribution(logits[-wanted[sequence].logits :])
                for i in members[sequence]:
                    scored[i] = likelihood(work[i].continuation, logprobs, entropies)
        return [scored[i] for i in range(len(work))]

    def follow(self, prompt: list[int], prefixes: Sequence[tuple[int, ...]]) -> list[Tensor]:
        """The log-probabilities of the token after the prompt and each prefix, in double
        precision, so that a tree of them adds up to 1.

        The keys and values of the prompt are cached for the next call, since a search returns to
        the same prompt many times. Prefixes of one length are computed together, without padding.
        """
        cache, after_prompt = self._prefilled(prompt)
        logprobs: dict[tuple[int, ...], Tensor] = {(): after_prompt}
        by_length: dict[int, list[tuple[int, ...]]] = {}
        for prefix in dict.fromkeys(filter(None, prefixes)):
            by_length.setdefault(len(prefix), []).append(prefix)
        for length, members in by_length.items():
            rows = max(1, self._max_batch_tokens // (len(prompt) + length))
            rows = 1 if must_be_alone() else rows
            for start in range(0, len(members), rows):
                chunk = members[start : start + rows]
                ids = torch.tensor(chunk, device=self._model.device)
                own = copy.deepcopy(cache)
                own.reorder_cache(ids.new_zeros(len(chunk)))
                for step in self._steps(length):
                    mask = ids.new_ones(len(chunk), len(prompt) + step.stop)
                    logits = self._forwarder.forward(ids[:, step], mask, own, keep=1)[:, -1]
                logprobs.update(zip(chunk, _exact(logits), strict=True))
        return [logprobs[prefix] for prefix in prefixes]

    def _steps(self, length: int) -> list[slice]:
        """The steps that read `length` tokens after a prompt: one step, or one per token for layers
        with a state, which some models reset for several tokens."""
        if self._prefill.cuttable:
            return [slice(0, length)]
        return [slice(at, at + 1) for at in range(length)]

    def _prefilled(self, prompt: list[int]) -> tuple[Any, Tensor]:
        """Keys and values of one prompt, and the distribution after it."""
        if self._kept is None or self._kept[0] != prompt:
            self._kept = None
            [made] = self._prefill.read([UnreadSequence(tuple(prompt))])
            self._kept = (prompt, made.cache, _exact(made.logits[:, -1])[0])
        return self._kept[1:]

    def _continue_alone(self, row: Row) -> None:
        """Draw tokens until the row's drafts are finished. Where they differ, each is completed in
        turn from a copy of their shared cache."""
        [made] = self._prefill.read([UnreadSequence(row.ids)])
        waiting = [(made.cache, child) for child in draw_next([row], after([made])).rows]
        while waiting:
            cache, row = waiting.pop()
            if waiting and waiting[-1][0] is cache:
                cache = copy.deepcopy(cache)
            ids = torch.tensor([row.ids[-1:]], device=self._model.device)
            logits = self._forwarder.forward(ids, ids.new_ones(1, len(row.ids)), cache, keep=1)
            waiting += [(cache, child) for child in draw_next([row], logits[:, -1]).rows]


def likelihood(given: Tokens, logprobs: Tensor, entropies: Tensor) -> Likelihood:
    """The likelihood of a continuation from the log-probabilities, (position, token), and entropies
    at the last positions.

    Raises:
        ReaderError: a number is not finite.
    """
    entropies = entropies[-len(given) :]
    wanted = torch.tensor(given, device=logprobs.device)
    chosen = logprobs[-len(given) :].gather(-1, wanted[:, None]).squeeze(-1)
    check_finite(entropies)
    check_finite(chosen)
    return Likelihood(chosen.tolist(), entropies.tolist())


def _exact(logits: Tensor) -> Tensor:
    """Log-probabilities of raw logits in double precision, which not every GPU has."""
    logprobs = torch.log_softmax(logits.cpu().double(), dim=-1)
    check_finite(logprobs.amax(dim=-1))
    return logprobs


def token_bytes(model: Any) -> int:
    """Approximate bytes of the keys and values of one token."""
    config = model.config.get_text_config()
    # Since transformers 5.20 layers may differ in size.
    layers = getattr(config, "per_layer_config", None) or [config] * config.num_hidden_layers
    return sum(_coordinates(layer) for layer in layers) * int(model.dtype.itemsize)


def _coordinates(layer: Any) -> int:
    """Numbers in the keys and values of one token in a layer of this configuration."""
    heads: int = layer.num_attention_heads
    shared: int = getattr(layer, "num_key_value_heads", None) or heads
    size: int = getattr(layer, "head_dim", None) or layer.hidden_size // heads
    return 2 * shared * size
