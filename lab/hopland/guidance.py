"""A reader's forward pass in training, and guidance on where to look.

A small causal model learns late, from the answer alone, which of many like names to read. So
training also says where: at the position that predicts a token of an answer, the first head of
the last layer shall look at that token in the sentence that states the fact. For a short answer
over several hops the head of the layer before shall look at the object of the fact before, and so
on down. The guidance is a second term of the loss; the trained model is a plain Llama.
"""

import torch
from torch.nn import functional
from transformers import LlamaForCausalLM
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from hopscope.lab.hopland import blocks
from hopscope.lab.hopland.blocks import Batch

FAR = -1e4
"""Added to the attention scores of what must not be seen."""


def states(
    model: LlamaForCausalLM, ids: torch.Tensor, segments: torch.Tensor, positions: torch.Tensor
) -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]:
    """Each layer's input, the final hidden states and the additive mask.

    The states are (sequence, token, width), the mask (sequence, 1, query, key).
    """
    body = model.model
    hidden = body.embed_tokens(ids)
    seen = torch.where(blocks.mask(segments), 0.0, FAR)
    turned = body.rotary_emb(hidden, position_ids=positions)
    inputs = []
    for layer in body.layers:
        inputs.append(hidden)
        hidden = layer(
            hidden, attention_mask=seen, position_ids=positions, position_embeddings=turned
        )
    return inputs, body.norm(hidden), seen


def pointing(
    model: LlamaForCausalLM, inputs: list[torch.Tensor], seen: torch.Tensor, batch: Batch
) -> torch.Tensor:
    """Mean over the sources of -log of the attention the guided head pays to the right key."""
    layers = model.model.layers
    losses = []
    for before in batch.sources[:, 3].unique().tolist():
        if before >= len(layers):
            continue  # more hops than layers
        row, query, key, _ = batch.sources[batch.sources[:, 3] == before].T
        # Sources are in the order of rows: (row, place) lays them out, padded, for one product.
        counts = torch.bincount(row, minlength=len(batch.ids))
        place = torch.arange(len(row)) - (counts.cumsum(0) - counts)[row]
        queries = torch.zeros(len(batch.ids), int(counts.max()), dtype=torch.int64)
        queries[row, place] = query
        layer = layers[len(layers) - 1 - before]
        attention, size = layer.self_attn, layer.self_attn.head_dim
        offering = layer.input_layernorm(inputs[len(layers) - 1 - before])
        asking = offering.gather(1, queries[..., None].expand(-1, -1, offering.shape[-1]))
        cos, sin = model.model.rotary_emb(offering, position_ids=batch.positions)
        there = queries[..., None].expand(-1, -1, size)
        asked = _turn(
            functional.linear(asking, attention.q_proj.weight[:size]),
            cos.gather(1, there),
            sin.gather(1, there),
        )
        offered = _turn(functional.linear(offering, attention.k_proj.weight[:size]), cos, sin)
        scores = (asked * attention.scaling) @ offered.mT
        rows = scores[row, place].float() + seen[row, 0, query]
        losses.append(functional.cross_entropy(rows, key, reduction="sum"))
    if not losses:
        return torch.zeros(())
    return torch.stack(losses).sum() / len(batch.sources)


def _turn(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary position embedding of one head, (sequence, token, size)."""
    turned: torch.Tensor = apply_rotary_pos_emb(heads[:, None], heads[:, None], cos, sin)[0]
    return turned[:, 0]
