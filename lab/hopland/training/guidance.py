"""A reader's forward pass in training, and the guidance of its attention.

From the answer alone a small causal model learns late which of many similar names to read. So
training also guides attention: at the position that predicts a token of an answer, the first head
of the last layer is guided to that token in the sentence that states the fact. For a short answer
over several hops the head of the layer before is guided to the object of the fact before, and so on
down. In a dialogue that judges passages, the second head of a middle layer is guided, at a fact's
object, to the number of its passage. The guidance is a second term of the loss; the trained model
is a plain Llama.
"""

from collections.abc import Callable
from typing import NamedTuple, Self

import torch
from torch import nn
from torch.nn import functional
from transformers import LlamaForCausalLM
from transformers.models.llama.modeling_llama import (
    LlamaAttention,
    LlamaDecoderLayer,
    apply_rotary_pos_emb,
)

from hopscope.lab.hopland.training import blocks
from hopscope.lab.hopland.training.blocks import Batch

FAR = -1e4
"""Added to the attention scores of hidden tokens."""


class Blockwise(NamedTuple):
    """Llama's attention of a block's queries to the keys of the opening and of their own block
    only: most scores of a packed sequence would be masked.

    The masks are added to scores: 0 or FAR.
    """

    causal: torch.Tensor  # (query, key), of the opening
    shown: torch.Tensor  # (sequence, 1, 1, key): of a block's tokens to the opening
    own: torch.Tensor  # (sequence, 1, line, query, key): of tokens in one line
    rows: torch.Tensor  # (sequence, 1, place in the lines, 1): the token
    home: torch.Tensor  # (sequence, token, 1): its place in the opening and lines

    @classmethod
    def of(cls, batch: Batch) -> Self:
        """The masks and places of a batch."""
        length, own = batch.shown.shape[1], batch.own
        rows = own.clamp(min=0).flatten(1)
        numbers = batch.segments.gather(1, rows).view_as(own)
        alike = (numbers[..., None] == numbers[..., None, :]).tril()

        def far(seen: torch.Tensor) -> torch.Tensor:
            return torch.where(seen, 0.0, FAR)

        return cls(
            far(torch.ones(length, length, dtype=torch.bool).tril()),
            far(batch.shown)[:, None, None],
            far(alike)[:, None],
            rows[:, None, :, None],
            batch.home[..., None],
        )

    def __call__(
        self, attention: LlamaAttention, offered: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> torch.Tensor:
        """The output of a layer's attention."""
        size, length = attention.head_dim, self.causal.shape[0]

        def heads(projection: nn.Module) -> torch.Tensor:
            laid: torch.Tensor = projection(offered).unflatten(-1, (-1, size)).transpose(1, 2)
            return laid

        query, key = apply_rotary_pos_emb(
            heads(attention.q_proj) * attention.scaling, heads(attention.k_proj), cos, sin
        )
        value = heads(attention.v_proj)
        before, told = key[:, :, :length], value[:, :, :length]
        scores = (query[:, :, :length] @ before.mT).float() + self.causal
        mixed = scores.softmax(-1).to(told.dtype) @ told
        if self.rows.numel():
            rows = self.rows.expand(-1, key.shape[1], -1, size)
            lines = self.own.shape[2:4]
            asking = query.gather(2, rows)
            there = (asking @ before.mT).float() + self.shown
            near = key.gather(2, rows).unflatten(2, lines)
            here = (asking.unflatten(2, lines) @ near.mT).float() + self.own
            here = here.flatten(2, 3)
            top = torch.maximum(there.amax(-1, keepdim=True), here.amax(-1, keepdim=True)).detach()
            there, here = (there - top).exp(), (here - top).exp()
            total = there.sum(-1, keepdim=True) + here.sum(-1, keepdim=True)
            far = there.to(told.dtype) @ told
            by = value.gather(2, rows).unflatten(2, lines)
            close = (here.to(told.dtype).unflatten(2, lines) @ by).flatten(2, 3)
            mixed = torch.cat([mixed, ((far + close) / total).to(mixed.dtype)], 2)
        mixed = mixed.transpose(1, 2).flatten(2)
        mixed = mixed.gather(1, self.home.expand(-1, -1, mixed.shape[-1]))
        out: torch.Tensor = attention.o_proj(mixed)
        return out


def through(
    layer: LlamaDecoderLayer,
    hidden: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    attend: Blockwise,
) -> torch.Tensor:
    """The output of a layer."""
    hidden = hidden + attend(layer.self_attn, layer.input_layernorm(hidden), cos, sin)
    out: torch.Tensor = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
    return out


def states(
    model: LlamaForCausalLM, batch: Batch, step: Callable[..., torch.Tensor] = through
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Each layer's input and the final hidden states, (sequence, token, width); `step` goes
    through one layer."""
    body, attend = model.model, Blockwise.of(batch)
    hidden = body.embed_tokens(batch.ids)
    cos, sin = body.rotary_emb(hidden, position_ids=batch.positions)
    inputs = []
    for layer in body.layers:
        inputs.append(hidden)
        hidden = step(layer, hidden, cos, sin, attend)
    return inputs, body.norm(hidden)


def pointing(model: LlamaForCausalLM, inputs: list[torch.Tensor], batch: Batch) -> torch.Tensor:
    """-log of the attention the guided heads pay to the right key: the mean over the sources of
    each head, summed."""
    layers = model.model.layers
    losses = [torch.zeros(())]
    total = torch.bincount(batch.sources[:, 4])
    for before, head in batch.sources[:, 3:].unique(dim=0).tolist():
        if before >= len(layers):
            continue  # more hops than layers
        chosen = (batch.sources[:, 3:] == torch.tensor([before, head])).all(1)
        row, query, key = batch.sources[chosen, :3].T
        # Sources are in the order of rows: (row, place) lays them out, padded, for one product.
        counts = torch.bincount(row, minlength=len(batch.ids))
        place = torch.arange(len(row)) - (counts.cumsum(0) - counts)[row]
        queries = torch.zeros(len(batch.ids), int(counts.max()), dtype=torch.int64)
        queries[row, place] = query
        layer = layers[len(layers) - 1 - before]
        attention, size = layer.self_attn, layer.self_attn.head_dim
        own = slice(head * size, (head + 1) * size)
        offering = layer.input_layernorm(inputs[len(layers) - 1 - before])
        asking = offering.gather(1, queries[..., None].expand(-1, -1, offering.shape[-1]))
        cos, sin = model.model.rotary_emb(offering, position_ids=batch.positions)
        there = queries[..., None].expand(-1, -1, size)
        asked = _turn(
            functional.linear(asking, attention.q_proj.weight[own]),
            cos.gather(1, there),
            sin.gather(1, there),
        )
        offered = _turn(functional.linear(offering, attention.k_proj.weight[own]), cos, sin)
        scores = (asked * attention.scaling) @ offered.mT
        seen = blocks.seen(batch.segments, row, query)
        rows = torch.where(seen, scores[row, place].float(), FAR)
        losses.append(functional.cross_entropy(rows, key, reduction="sum") / total[head])
    return torch.stack(losses).sum()


def _turn(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary position embedding of one head, (sequence, token, size)."""
    turned: torch.Tensor = apply_rotary_pos_emb(heads[:, None], heads[:, None], cos, sin)[0]
    return turned[:, 0]
