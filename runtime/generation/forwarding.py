"""One forward pass of a model over rows of tokens, and the count of all of them.

Rows are padded on the left, the padding is masked, and positions count from each row's own first
token. The tokens of a row have no gaps, so that attention over a sliding window sees the same as
for the row alone.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hopscope.runtime.models.llama import Llama
from hopscope.runtime.models.parts import Part
from hopscope.runtime.types import ForwardCounts


class Forwarder:
    """A causal language model that counts its forward passes."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.counted = ForwardCounts()
        accepted = inspect.signature(model.forward).parameters
        self._takes_positions = "position_ids" in accepted
        self._keeps_logits = "logits_to_keep" in accepted
        self.joins = isinstance(model, Llama)
        """Whether a pass takes parts that differ in their numbers of rows and tokens."""

    def forward(
        self, ids: Tensor, mask: Tensor, cache: Any, *, keep: int, reused: int = 0
    ) -> Tensor:
        """Logits of at least the last `keep` positions.

        Args:
            ids: (row, position), the new tokens.
            mask: (row, position), of the tokens in the cache, then of the new ones.
            cache: receives the keys and values of the new tokens.
            reused: number of prompt tokens in the cache, for the count.
        """
        rows, columns = ids.shape
        self.counted += ForwardCounts(passes=1, tokens=rows * columns, reused=reused)
        options: dict[str, Any] = {}
        if self._takes_positions:
            positions = (mask.cumsum(dim=-1) - 1).clamp(min=0)
            options["position_ids"] = positions[:, -columns:]
        if self._keeps_logits:
            options["logits_to_keep"] = keep
        out = self.model(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=cache,
            use_cache=True,
            **options,
        )
        logits: Tensor = out.logits
        return logits

    def together(self, parts: Sequence[Part], *, reused: int = 0) -> list[Tensor]:
        """The logits of each part, in one pass if the model joins them."""
        if not self.joins:
            self.counted += ForwardCounts(reused=reused)
            return [self._alone(part) for part in parts]
        tokens = sum(part.ids.numel() for part in parts)
        self.counted += ForwardCounts(passes=1, tokens=tokens, reused=reused)
        logits: list[Tensor] = self.model.together(parts)
        return logits

    def _alone(self, part: Part) -> Tensor:
        assert part.mask is not None, "only a model that joins parts does without"
        return self.forward(part.ids, part.mask, part.cache, keep=part.keep)

    def rows(self, sequences: Sequence[Sequence[int]], columns: int) -> Tensor:
        """The last `columns` tokens of each sequence, padded on the left."""
        ends = [list(sequence[-columns:]) for sequence in sequences]
        ids = [[0] * (columns - len(end)) + end for end in ends]
        return torch.tensor(ids, device=self.model.device)

    def mask(self, lengths: Sequence[int], width: int | None = None) -> Tensor:
        """The mask of sequences of these lengths, (row, position); by default as wide as the
        longest."""
        width = max(lengths) if width is None else width
        first = torch.tensor([[width - length] for length in lengths], device=self.model.device)
        return (torch.arange(width, device=self.model.device) >= first).long()
