"""Runs short texts through the second version of DeBERTa without unused relative positions.

Its attention compares every token with a table of relative positions, 512 rows in the published
models, which each layer projects anew and repeats for each text of a batch, however short the texts
are. A text of 30 tokens has distances up to 29: 60 rows give the same scores.

Source: He et al. 2021, DeBERTa (arXiv:2006.03654), §3.1: relative distances δ(i, j) within k.
"""

import copy
from typing import Any

import torch
from transformers.models.deberta_v2.modeling_deberta_v2 import (
    DisentangledSelfAttention,
    make_log_bucket_position,
)


class NearAttention(DisentangledSelfAttention):
    """Disentangled attention over the occurring distances only, with the same scores."""

    def disentangled_attention_bias(
        self,
        query_layer: torch.Tensor,
        key_layer: torch.Tensor,
        relative_pos: torch.Tensor | None,
        rel_embeddings: torch.Tensor,
        scale_factor: int,
    ) -> Any:
        """The positions' part of the attention scores; see transformers."""
        whole = self.pos_ebd_size
        # `keep_near` has checked that a distance's bucket is never larger than the distance.
        near = min(whole, max(query_layer.shape[-2], key_layer.shape[-2]))
        # The same weights with another span; several threads may run this at once.
        narrowed = copy.copy(self)
        narrowed.pos_ebd_size = near
        rows = rel_embeddings[whole - near : whole + near]
        return DisentangledSelfAttention.disentangled_attention_bias(
            narrowed, query_layer, key_layer, relative_pos, rows, scale_factor
        )


def keep_near(model: torch.nn.Module) -> None:
    """Make a model's attention skip relative positions that do not occur."""
    for module in model.modules():
        if type(module) is DisentangledSelfAttention and _orderly(module):
            module.__class__ = NearAttention


def _orderly(attention: DisentangledSelfAttention) -> bool:
    """Whether attention uses distances, and no distance falls into a bucket with a larger number,
    as some do if there are almost as many buckets as distances."""
    if not attention.relative_attention:
        return False
    buckets, positions = attention.position_buckets, attention.max_relative_positions
    if buckets <= 0:
        return True
    distances = torch.arange(positions)
    return not (make_log_bucket_position(distances, buckets, positions) > distances).any()
