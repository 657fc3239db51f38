"""The forward passes: prefill once, then decode all samples together; and teacher forcing.

Invariant: a row's numbers do not depend on the rows beside it. Rows are padded on the left, the
padding is masked, and positions count from each row's own first token. What is recorded comes
from the raw logits, before temperature; the samples of a prompt share its keys and values.
"""

import copy
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import DynamicCache

from hopscope.runtime.errors import ReaderError
from hopscope.runtime.readers._draft import Draft
from hopscope.runtime.readers._sampling import distribution, draw, uniform


class Likelihood(NamedTuple):
    """A given continuation under the model, token by token."""

    logprobs: list[float]
    entropies: list[float]


class Decoder:
    """A causal language model as pure arithmetic on token ids; it knows no text."""

    def __init__(self, model: Any, max_batch_tokens: int) -> None:
        self._model = model
        self._max_batch_tokens = max_batch_tokens
        accepted = inspect.signature(model.forward).parameters
        self._takes_positions = "position_ids" in accepted
        self._keeps_logits = "logits_to_keep" in accepted

    def decode(self, work: Sequence[tuple[list[int], list[Draft]]]) -> None:
        """Write all drafts of each prompt to their ends."""
        ids, mask = self._pad([prompt for prompt, _ in work])
        cache: Any = DynamicCache(config=self._model.config)
        logits = self._forward(ids, mask, cache, keep=1)[:, -1]
        rows = [(i, draft) for i, (_, drafts) in enumerate(work) for draft in drafts]
        width = ids.shape[1] + max(draft.max_tokens for _, draft in rows)
        step = max(1, self._max_batch_tokens // width)
        for start in range(0, len(rows), step):
            chunk = rows[start : start + step]
            parents = torch.tensor([i for i, _ in chunk], device=ids.device)
            last = start + step >= len(rows)
            own = cache if last else copy.deepcopy(cache)
            own.reorder_cache(parents)
            self._continue([draft for _, draft in chunk], own, mask[parents], logits[parents])

    def score(self, work: Sequence[tuple[list[int], list[int]]]) -> list[Likelihood]:
        """How likely each continuation, of one token or more, is after its prompt."""
        ids, mask = self._pad([prompt + given[:-1] for prompt, given in work])
        logits = self._forward(ids, mask, None, keep=max(len(given) for _, given in work))
        scored = []
        for row, (_, given) in zip(logits, work, strict=True):
            logprobs, entropies = distribution(row[-len(given) :])
            wanted = torch.tensor(given, device=row.device)
            chosen = logprobs.gather(-1, wanted[:, None]).squeeze(-1)
            check_finite(entropies)
            check_finite(chosen)
            scored.append(Likelihood(chosen.tolist(), entropies.tolist()))
        return scored

    def _continue(self, drafts: list[Draft], cache: Any, mask: Tensor, logits: Tensor) -> None:
        """Draw tokens until all drafts are finished; a finished one leaves the batch."""
        while True:
            logprobs, entropies = distribution(logits)
            check_finite(entropies)
            tokens = draw(
                logprobs,
                [draft.temperature for draft in drafts],
                [uniform(draft.stream, draft.steps) for draft in drafts],
            )
            chosen = logprobs.gather(-1, tokens[:, None]).squeeze(-1)
            triples = zip(tokens.tolist(), chosen.tolist(), entropies.tolist(), strict=True)
            for draft, (token, logprob, entropy) in zip(drafts, triples, strict=True):
                draft.add(token, logprob, entropy)
            alive = [i for i, draft in enumerate(drafts) if draft.finished is None]
            if not alive:
                return
            if len(alive) < len(drafts):
                kept = torch.tensor(alive, device=tokens.device)
                cache.reorder_cache(kept)
                mask, tokens = mask[kept], tokens[kept]
                drafts = [drafts[i] for i in alive]
            mask = torch.cat([mask, mask.new_ones(len(drafts), 1)], dim=1)
            logits = self._forward(tokens[:, None], mask, cache, keep=1)[:, -1]

    def _pad(self, sequences: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
        """Token ids and attention mask, padded on the left."""
        width = max(map(len, sequences))
        ids = [[0] * (width - len(sequence)) + sequence for sequence in sequences]
        mask = [[0] * (width - len(sequence)) + [1] * len(sequence) for sequence in sequences]
        device = self._model.device
        return torch.tensor(ids, device=device), torch.tensor(mask, device=device)

    def _forward(self, ids: Tensor, mask: Tensor, cache: Any, *, keep: int) -> Tensor:
        """Logits of at least the last `keep` positions."""
        options: dict[str, Any] = {}
        if self._takes_positions:
            positions = (mask.cumsum(dim=-1) - 1).clamp(min=0)
            options["position_ids"] = positions[:, -ids.shape[1] :]
        if self._keeps_logits:
            options["logits_to_keep"] = keep
        out = self._model(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=cache,
            use_cache=cache is not None,
            **options,
        )
        logits: Tensor = out.logits
        return logits


def check_finite(numbers: Tensor) -> None:
    """Refuse what cannot be recorded: overflow, or a given token that the model rules out.

    Raises:
        ReaderError: a number is not finite.
    """
    if not bool(torch.isfinite(numbers).all()):
        raise ReaderError(
            "the model's probabilities are not finite: it overflowed (try dtype float32) "
            "or rules out a given token altogether"
        )
