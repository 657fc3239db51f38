"""How long a text a model takes."""

from typing import Any

OFFSET = frozenset({"camembert", "longformer", "mpnet"})
"""Besides those called after RoBERTa, models that number positions from behind their padding
index, and so have fewer than their configuration says."""


def longest(config: Any, tokenizer: Any, *, otherwise: int = 512) -> int:
    """Tokens that fit, special ones included; `otherwise` where the model has no table of positions
    that would bound them."""
    positions: int = getattr(config, "max_position_embeddings", None) or otherwise
    if "roberta" in config.model_type or config.model_type in OFFSET:
        positions -= (config.pad_token_id or 0) + 1
    limit: int = tokenizer.model_max_length
    return min(positions, limit)
