"""The embedded reader with a feed-forward padded by zeros, which says the same at a larger model's
price; or with a longer context than it was trained on, where what it says means nothing."""

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from transformers import AutoTokenizer, LlamaForCausalLM

from hopscope.runtime.readers import tiny


def save(folder: Path, *, feed_forward: int | None = None, window: int | None = None) -> Path:
    """Write the reader with a feed-forward of this width in each layer, and a context of so many
    tokens."""
    model = LlamaForCausalLM.from_pretrained(str(tiny.FOLDER), dtype=torch.float32)
    if window is not None:
        model.config.max_position_embeddings = window
    feed_forward = feed_forward or model.config.intermediate_size
    more = feed_forward - model.config.intermediate_size
    if more < 0:
        raise SystemExit(f"the feed-forward is {model.config.intermediate_size} wide already")
    for layer in model.model.layers:
        for projection in (layer.mlp.gate_proj, layer.mlp.up_proj):
            projection.weight = nn.Parameter(functional.pad(projection.weight, (0, 0, 0, more)))
        layer.mlp.down_proj.weight = nn.Parameter(
            functional.pad(layer.mlp.down_proj.weight, (0, more))
        )
    model.config.intermediate_size = feed_forward
    model.save_pretrained(str(folder))
    AutoTokenizer.from_pretrained(tiny.FOLDER, local_files_only=True).save_pretrained(folder)
    return folder
