"""The longest text that a model accepts."""

from typing import Any

OFFSET = frozenset({"camembert", "longformer", "mpnet"})
"""Models, besides those named after RoBERTa, that number positions from after their padding index,
and so have fewer positions than their configuration says."""


def longest(config: Any, tokenizer: Any, *, otherwise: int = 512) -> int:
    """Most tokens, special ones included; `otherwise` if no table of positions limits the model."""
    positions: int = getattr(config, "max_position_embeddings", None) or otherwise
    if "roberta" in config.model_type or config.model_type in OFFSET:
        positions -= (config.pad_token_id or 0) + 1
    limit: int = tokenizer.model_max_length
    return min(positions, limit)
