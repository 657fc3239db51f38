"""Runs texts through the second version of DeBERTa on the processor, without padding.

The tokens of all texts of a batch stand one after the other. Only attention looks at texts, those
of one length together. The table of relative positions is projected when the model is loaded. A
classifier reads its verdict at the first token, so the last layer computes no other. What is
computed is what transformers computes, in another order: outputs differ by rounding alone.

Source: He et al. 2021, DeBERTa (arXiv:2006.03654), §3.1.
"""

from collections.abc import Iterator, Sequence
from math import sqrt
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


class Group(NamedTuple):
    """Texts of one length, one after the other among the tokens of a batch."""

    first: int
    """The number of its first text."""
    texts: int
    start: int
    """The place of its first token."""
    length: int
    """Tokens of each text."""
    rows: Tensor
    """The row of the table of positions for each pair of tokens, (i, j)."""

    @property
    def tokens(self) -> slice:
        return slice(self.start, self.start + self.texts * self.length)

    @property
    def firsts(self) -> slice:
        return slice(self.first, self.first + self.texts)

    def split(self, values: Tensor) -> Tensor:
        """The group's part of (head, token, column), as (head, text, token, column)."""
        heads, _, columns = values.shape
        return values[:, self.tokens].view(heads, self.texts, self.length, columns)


def firsts(groups: Sequence[Group]) -> list[int]:
    """The places of texts' first tokens."""
    return [group.start + i * group.length for group in groups for i in range(group.texts)]


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

    def groups(self, lengths: Sequence[int], near: slice) -> Iterator[Group]:
        """The texts of each length; equal ones stand together."""
        half = self._half - near.start
        start = first = 0
        for place, length in enumerate(lengths, start=1):
            if place == len(lengths) or lengths[place] != length:
                places = torch.arange(length)
                distance = self._bucket(places[:, None] - places[None, :]).long()
                rows = (distance + half).clamp(0, 2 * half - 1)
                yield Group(first, place - first, start, length, rows)
                start += (place - first) * length
                first = place

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

    def __call__(self, tokens: Tensor, groups: Sequence[Group], near: slice) -> Tensor:
        """The outputs, (token, coordinate), of all tokens or of the first of each text."""
        sides = self._by_head(self._project(tokens))
        if self._query is None:
            keys, values, queries = sides.chunk(3)
        else:
            keys, values = sides.chunk(2)
            tokens = tokens[firsts(groups)]
            queries = self._by_head(self._query(tokens))
        attended = self._attend(queries * self._scale, keys, values, groups, near)
        after_attention, after_all = self._norms
        tokens = after_attention(self._attended(attended).float() + tokens)
        wide = self._activation(self._wide(tokens))
        outputs: Tensor = after_all(self._narrow(wide).float() + tokens)
        return outputs

    def _attend(
        self, queries: Tensor, keys: Tensor, values: Tensor, groups: Sequence[Group], near: slice
    ) -> Tensor:
        """The mean of the values that each query attends to, (query, coordinate).

        Args:
            queries, keys, values: (head, token, coordinate); of queries all or texts' first ones.
        """
        by_row = None if self._keys is None else queries @ self._keys[:, :, near]
        to_row = None if self._queries is None else keys @ self._queries[:, :, near]
        means = torch.empty_like(queries)
        for group in groups:
            first_only = self._query is not None
            own = group.firsts if first_only else group.tokens
            rows = group.rows[:1] if first_only else group.rows  # (query, key)
            shape = len(queries), group.texts, len(rows), group.length
            keyed = group.split(keys)
            scores = queries[:, own].view(*shape[:3], -1) @ keyed.transpose(2, 3)
            if by_row is not None:
                scores += by_row[:, own].view(*shape[:3], -1).gather(3, rows.expand(shape))
            if to_row is not None:
                turned = rows.t().expand(*shape[:2], group.length, len(rows))
                scores += group.split(to_row).gather(3, turned).transpose(2, 3)
            means[:, own] = (scores.softmax(dim=3) @ group.split(values)).flatten(1, 2)
        return means.transpose(0, 1).flatten(1)

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
        groups = list(self._distances.groups(lengths, near))
        tokens = embeddings
        for number, layer in enumerate(self._layers):
            tokens = layer(tokens, groups, near)
            if number == 0 and self._conv is not None:
                tokens = self._convolved(embeddings, tokens, groups)
        if self._first_only and len(tokens) > len(lengths):
            tokens = tokens[firsts(groups)]
        return tokens

    def _convolved(self, embeddings: Tensor, tokens: Tensor, groups: Sequence[Group]) -> Tensor:
        convolved = torch.empty_like(tokens)
        for group in groups:
            shape = group.texts, group.length, -1
            there = torch.ones(group.texts, group.length, dtype=torch.long)
            own = embeddings[group.tokens].view(shape), tokens[group.tokens].view(shape)
            convolved[group.tokens] = self._conv(*own, there).flatten(0, 1)
        return convolved


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
