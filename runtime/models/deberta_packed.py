"""Runs texts through the second version of DeBERTa on the processor, without padding.

The tokens of all texts of a batch stand one after the other. Only attention looks at texts, and
only there each has as many places as the longest. The table of relative positions is projected when
the model is loaded. A classifier reads its verdict at the first token, so the last layer computes
no other. What is computed is what transformers computes, in another order: outputs differ by
rounding alone.

Source: He et al. 2021, DeBERTa (arXiv:2006.03654), §3.1.
"""

from collections.abc import Sequence
from math import inf, sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.deberta_v2.modeling_deberta_v2 import (
    DebertaV2ForSequenceClassification,
    make_log_bucket_position,
)

from hopscope.runtime.models.linear import Build, laid_out

CACHED = 384
"""Tokens computed together. More would not fit into the processor's cache between two steps; fewer
read the weights more often."""


class Layout(NamedTuple):
    """The texts of a batch, the longest first: packed, their tokens stand one after the other;
    spread, each has as many places as the longest."""

    texts: int
    length: int
    """Tokens of the longest text."""
    there: Tensor | None
    """Whether a place has a token, (text, place); None if all have."""
    places: Tensor
    """The number of the token at each place, (text · place); that of a text's first where there is
    none."""
    firsts: Tensor
    """The numbers of texts' first tokens, (text)."""
    rows: Tensor
    """The row of the table of positions for each pair of places, (i, j)."""

    def spread(self, values: Tensor) -> Tensor:
        """From (token, column) to (text · place, column)."""
        return values if self.there is None else values[self.places]

    def packed(self, values: Tensor) -> Tensor:
        """From (text · place, …) to (token, …)."""
        return values if self.there is None else values[self.there.flatten()]


class Distances:
    """The rows of the table of relative positions that texts need."""

    def __init__(self, encoder: Any) -> None:
        self._positions: int = encoder.max_relative_positions
        self._buckets: int = encoder.position_buckets
        self._half: int = encoder.rel_embeddings.num_embeddings // 2
        distances = torch.arange(self._positions)
        # Some do if there are almost as many buckets as distances.
        self._bucket_exceeds = bool((self._bucket(distances) > distances).any())

    def near(self, length: int) -> slice:
        """The rows of the table for texts of at most this length."""
        near = self._half if self._bucket_exceeds else min(self._half, length)
        return slice(self._half - near, self._half + near)

    def layout(self, lengths: Sequence[int], near: slice) -> Layout:
        """The layout of texts of these lengths, the longest first."""
        half = self._half - near.start
        counts = torch.tensor(lengths)
        firsts = counts.cumsum(0) - counts
        places = torch.arange(lengths[0])
        distance = self._bucket(places[:, None] - places[None, :]).long()
        rows = (distance + half).clamp(0, 2 * half - 1)
        there = places < counts[:, None]
        numbers = (firsts[:, None] + places * there).flatten()
        every = lengths[-1] == lengths[0]
        return Layout(len(lengths), lengths[0], None if every else there, numbers, firsts, rows)

    def _bucket(self, distance: Tensor) -> Tensor:
        if self._buckets <= 0:
            return distance
        bucket: Tensor = make_log_bucket_position(distance, self._buckets, self._positions)
        return bucket


class Layer:
    """One layer over the tokens of many texts."""

    def __init__(self, layer: Any, table: Tensor, build: Build, *, first_only: bool) -> None:
        """
        Args:
            table: the embeddings of relative positions, (row, coordinate).
            build: makes the linear maps.
            first_only: whether only the outputs at texts' first tokens are wanted.
        """
        attention = layer.attention.self
        kinds = {"c2p", "p2c"} & set(attention.pos_att_type)
        self._size: int = attention.attention_head_size
        self._scale = 1 / sqrt(self._size * (1 + len(kinds)))
        query, key, value = attention.query_proj, attention.key_proj, attention.value_proj
        self._keys = self._queries = None
        """Projected positions, (head, coordinate, row)."""
        if "c2p" in kinds:
            project = key if attention.share_att_key else attention.pos_key_proj
            self._keys = self._by_head(project(table)).transpose(1, 2)
        if "p2c" in kinds:
            project = query if attention.share_att_key else attention.pos_query_proj
            self._queries = self._by_head(project(table)).transpose(1, 2) * self._scale
        self._project = build([key, value] if first_only else [key, value, query])
        self._query = build([query]) if first_only else None
        self._attended = build([layer.attention.output.dense])
        self._wide = build([layer.intermediate.dense])
        self._narrow = build([layer.output.dense])
        self._activation = layer.intermediate.intermediate_act_fn
        self._norms = layer.attention.output.LayerNorm, layer.output.LayerNorm

    def __call__(self, tokens: Tensor, layout: Layout, near: slice) -> Tensor:
        """The outputs, (token, coordinate), of all tokens or of the first of each text."""
        sides = self._by_head(layout.spread(self._project(tokens)))
        if self._query is None:
            keys, values, queries = sides.chunk(3)
        else:
            keys, values = sides.chunk(2)
            tokens = tokens[layout.firsts]
            queries = self._by_head(self._query(tokens))
        attended = self._attend(queries * self._scale, keys, values, layout, near)
        if self._query is None:
            attended = layout.packed(attended)
        after_attention, after_all = self._norms
        tokens = after_attention(self._attended(attended.flatten(1)).float() + tokens)
        wide = self._activation(self._wide(tokens))
        outputs: Tensor = after_all(self._narrow(wide).float() + tokens)
        return outputs

    def _attend(
        self, queries: Tensor, keys: Tensor, values: Tensor, layout: Layout, near: slice
    ) -> Tensor:
        """The mean of the values that each query attends to, (query, head, coordinate).

        Args:
            queries, keys, values: (head, text · place, coordinate); of queries all or texts' first
                ones.
        """
        heads, _, size = queries.shape
        rows = layout.rows if self._query is None else layout.rows[:1]  # (query, key)
        shape = heads, layout.texts, len(rows), layout.length

        def by_text(each: Tensor) -> Tensor:
            return each.view(heads * layout.texts, -1, size)

        scores = (by_text(queries) @ by_text(keys).transpose(1, 2)).view(shape)
        if self._keys is not None:
            by_row = queries @ self._keys[:, :, near]
            scores += by_row.view(*shape[:3], -1).gather(3, rows.expand(shape))
        if self._queries is not None:
            to_row = (keys @ self._queries[:, :, near]).view(*shape[:2], layout.length, -1)
            turned = rows.t().expand(*shape[:2], layout.length, len(rows))
            scores += to_row.gather(3, turned).transpose(2, 3)
        if layout.there is not None:
            scores.masked_fill_(~layout.there[:, None], -inf)
        means = scores.softmax(dim=3).flatten(0, 1) @ by_text(values)
        return means.view(heads, -1, size).transpose(0, 1)

    def _by_head(self, values: Tensor) -> Tensor:
        """From (token, coordinate of all heads) to (head, token, coordinate), in single
        precision."""
        by_head = values.view(len(values), -1, self._size).transpose(0, 1)
        return by_head.to(torch.float32, memory_format=torch.contiguous_format).contiguous()


class PackedEncoder(nn.Module):
    """Stands in the place of transformers' encoder, whose layers it takes over."""

    def __init__(self, encoder: Any, build: Build, *, first_only: bool) -> None:
        """
        Args:
            build: makes the linear maps.
            first_only: whether only the outputs at texts' first tokens are wanted. They are then
                the only ones returned.
        """
        super().__init__()
        self._distances = Distances(encoder)
        self._conv = encoder.conv
        self._first_only = first_only
        self._layers = []
        last = len(encoder.layer) - 1
        # The convolution behind the first layer needs all its outputs.
        needs_all = 0 if self._conv is not None else -1
        with torch.no_grad():
            table = encoder.get_rel_embedding()
            for number, layer in enumerate(encoder.layer):
                only = first_only and number == last > needs_all
                self._layers.append(Layer(layer, table, build, first_only=only))
                encoder.layer[number] = nn.Identity()  # its weights are not needed twice

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor, **_: object
    ) -> BaseModelOutput:
        """
        Args:
            hidden_states: the embeddings, (text, position, coordinate).
            attention_mask: (text, position), 0 for padding.
        """
        lengths = attention_mask.sum(dim=1)
        order = lengths.argsort(descending=True, stable=True)
        width = 1 if self._first_only else hidden_states.shape[1]
        outputs = torch.zeros_like(hidden_states[:, :width])
        most = max(1, CACHED // int(lengths.max()))
        # Parts of like size: a small one reads the weights for few tokens.
        for texts in order.tensor_split(-(-len(order) // most)):
            there = attention_mask[texts].bool()
            tokens = self._outputs(hidden_states[texts][there], lengths[texts].tolist())
            if self._first_only:
                outputs[texts, 0] = tokens
            else:
                rows, columns = there.nonzero(as_tuple=True)
                outputs[texts[rows], columns] = tokens
        return BaseModelOutput(last_hidden_state=outputs, hidden_states=(outputs,))

    def _outputs(self, embeddings: Tensor, lengths: list[int]) -> Tensor:
        """The outputs of texts, or at their first tokens, (token, coordinate)."""
        near = self._distances.near(lengths[0])
        layout = self._distances.layout(lengths, near)
        tokens = embeddings
        for number, layer in enumerate(self._layers):
            tokens = layer(tokens, layout, near)
            if number == 0 and self._conv is not None:
                tokens = self._convolved(embeddings, tokens, layout)
        if self._first_only and len(tokens) > len(lengths):
            tokens = tokens[layout.firsts]
        return tokens

    def _convolved(self, embeddings: Tensor, tokens: Tensor, layout: Layout) -> Tensor:
        there = layout.there
        if there is None:
            there = torch.ones(layout.texts, layout.length, dtype=torch.bool)
        own = (
            layout.spread(each).view(layout.texts, layout.length, -1) * there[:, :, None]
            for each in (embeddings, tokens)
        )
        convolved: Tensor = self._conv(*own, there.long())
        return layout.packed(convolved.flatten(0, 1))


def packs(model: nn.Module) -> bool:
    """Whether `pack` can run a model: a sequence classifier with relative positions, in single
    precision on the processor."""
    return (
        isinstance(model, DebertaV2ForSequenceClassification)
        and model.device.type == "cpu"
        and model.dtype == torch.float32
        and model.deberta.z_steps <= 1
        and model.deberta.encoder.relative_attention
    )


def pack(model: DebertaV2ForSequenceClassification, build: Build = laid_out) -> None:
    """Put the encoder of this module in the place of the model's own."""
    body: Any = model.deberta
    body.encoder = PackedEncoder(body.encoder, build, first_only=True)
