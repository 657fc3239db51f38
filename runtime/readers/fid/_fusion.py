"""Fusion-in-Decoder as arithmetic on token ids; it knows no text.

Each input of a request is encoded alone. The states of all its inputs stand one behind the other,
without padding, and the decoder attends to all of them. T5's attention to them has no positions, so
the order of the inputs has no effect but rounding.

Invariant: up to rounding, a row's numbers depend neither on the other rows nor on the batches that
its inputs were encoded in; where rows must be alone, this holds to the last digit. Records come
from the raw logits, before temperature.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers.modeling_outputs import BaseModelOutput

from hopscope.runtime.generation.decoding import Likelihood, likelihood
from hopscope.runtime.generation.draft import Draft
from hopscope.runtime.generation.prefixes import Tokens
from hopscope.runtime.generation.rows import Row, draw_next
from hopscope.runtime.generation.sampling import distribution
from hopscope.runtime.models.batches import Size, in_batches, must_be_alone, pack

LOGITS_PER_POSITION = 16_384
"""Number of logits that take as much memory as one position: scoring keeps a whole vocabulary of
them for each scored token."""

Inputs = tuple[Tokens, ...]
"""What the encoder reads for one request, each part of it alone."""


class Unwritten(NamedTuple):
    """Drafts of one request."""

    inputs: Inputs
    drafts: list[Draft]


class GivenReply(NamedTuple):
    """A reply to score, of one token or more."""

    inputs: Inputs
    reply: Tokens


class Memory(NamedTuple):
    """The states that some rows attend to."""

    states: Tensor
    """(row, position, coordinate), padded on the right."""
    mask: Tensor
    """(row, position)."""


class Fusion:
    """An encoder-decoder whose decoder attends to the states of several inputs."""

    def __init__(self, model: Any, start: int, max_batch_tokens: int) -> None:
        """`start` is the token that the decoder begins with."""
        self._model = model
        self._start = start
        self._area = max_batch_tokens

    def decode(self, work: Sequence[Unwritten]) -> None:
        """Complete all drafts."""
        sizes = [Size(_width(each.inputs), len(each.drafts)) for each in work]
        for batch in pack(sizes, 0 if must_be_alone() else self._area):
            members = [work[place] for place in batch]
            states = self.encode([each.inputs for each in members])
            for some in self._together(members):
                self._complete(some, states)

    def score(self, work: Sequence[GivenReply]) -> list[Likelihood]:
        """The likelihood of each reply."""
        weight = 1 + self._model.config.vocab_size // LOGITS_PER_POSITION
        return in_batches(
            work,
            self._scored,
            width=lambda each: _width(each.inputs) + len(each.reply) * weight,
            area=self._area,
        )

    def encode(self, requests: Sequence[Inputs]) -> list[Tensor]:
        """The states of each request's inputs, one behind the other, (position, coordinate). Equal
        inputs are encoded once."""
        parts = iter(
            in_batches(
                [ids for inputs in requests for ids in inputs],
                self._encoded,
                width=len,
                area=self._area,
            )
        )
        return [torch.cat([next(parts) for _ in inputs]) for inputs in requests]

    def _encoded(self, batch: Sequence[Tokens]) -> list[Tensor]:
        ids, mask = self._padded(batch)
        states = self._model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
        return [row[: len(each)] for row, each in zip(states, batch, strict=True)]

    def _together(self, members: list[Unwritten]) -> Iterator[list[Unwritten]]:
        """The drafts that are decoded at once. Those of a single request may be too many."""
        if len(members) > 1:
            yield members
            return
        [(inputs, drafts)] = members
        most = 1 if must_be_alone() else max(1, self._area // _width(inputs))
        for first in range(0, len(drafts), most):
            yield [Unwritten(inputs, drafts[first : first + most])]

    def _complete(self, members: Sequence[Unwritten], states: Sequence[Tensor]) -> None:
        def alone(ids: Tokens) -> Tensor:
            return self._alone(members[ids[0]].inputs, ids[1:])

        # In half precision most draws would be close.
        exact = alone if self._model.dtype == torch.float32 and not must_be_alone() else None
        memory = _memory(states)
        # The first of a row's ids is no token but the place of its request.
        rows = [Row((place, self._start), each.drafts) for place, each in enumerate(members)]
        cache = None
        while rows:
            ids = torch.tensor([row.ids[-1:] for row in rows], device=self._model.device)
            out = self._decoded(ids, memory, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            drawn = draw_next(rows, out.logits[:, -1], exact)
            if drawn.rows and drawn.parents != list(range(len(rows))):
                kept = torch.tensor(drawn.parents, device=self._model.device)
                cache.batch_select_indices(kept)
                memory = Memory(memory.states, memory.mask[kept])
            # Their keys and values are in the cache: of the states only the shape matters now.
            shape = memory.states.new_empty(1, memory.mask.shape[1], 1)
            memory = Memory(shape.expand(len(drawn.rows), -1, -1), memory.mask)
            rows = drawn.rows

    def _alone(self, inputs: Inputs, ids: Tokens) -> Tensor:
        """The logits after a reply, (1, token), without company and cache."""
        [states] = [torch.cat([state for each in inputs for state in self._encoded([each])])]
        given = torch.tensor([ids], device=self._model.device)
        logits: Tensor = self._decoded(given, _memory([states]), use_cache=False).logits[:, -1]
        return logits

    def _scored(self, batch: Sequence[GivenReply]) -> Iterator[Likelihood]:
        distinct = list(dict.fromkeys(each.inputs for each in batch))
        states = dict(zip(distinct, self.encode(distinct), strict=True))
        memory = _memory([states[each.inputs] for each in batch])
        # The decoder looks back only, so that padding behind a reply has no effect.
        ids, _ = self._padded([(self._start, *each.reply[:-1]) for each in batch])
        logits = self._decoded(ids, memory, use_cache=False).logits
        for row, each in zip(logits, batch, strict=True):
            yield likelihood(each.reply, *distribution(row[: len(each.reply)]))

    def _decoded(self, ids: Tensor, memory: Memory, **options: Any) -> Any:
        return self._model(
            encoder_outputs=BaseModelOutput(last_hidden_state=memory.states),
            attention_mask=memory.mask,
            decoder_input_ids=ids,
            **options,
        )

    def _padded(self, batch: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        """Ids and mask, (row, position), padded on the right."""
        width = max(map(len, batch))
        ids = [[*each, *[0] * (width - len(each))] for each in batch]
        mask = [[1] * len(each) + [0] * (width - len(each)) for each in batch]
        device = self._model.device
        return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def _memory(states: Sequence[Tensor]) -> Memory:
    lengths = torch.tensor([[len(each)] for each in states], device=states[0].device)
    padded = pad_sequence(list(states), batch_first=True)
    columns = torch.arange(padded.shape[1], device=padded.device)
    return Memory(padded, (columns < lengths).long())


def _width(inputs: Inputs) -> int:
    return sum(map(len, inputs))
