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
        self._kept: tuple[list[int], Any, Tensor] | None = None

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

    def follow(self, prompt: list[int], prefixes: Sequence[tuple[int, ...]]) -> list[Tensor]:
        """The log-probabilities of the token after the prompt and each prefix, in double
        precision, so that a tree of them adds up to 1.

        The keys and values of the prompt are kept for the next call, as a search comes back to
        the same prompt many times. Prefixes of one length are computed together: nothing is
        padded.
        """
        cache, after_prompt = self._prefilled(prompt)
        found: dict[tuple[int, ...], Tensor] = {(): after_prompt}
        by_length: dict[int, list[tuple[int, ...]]] = {}
        for prefix in dict.fromkeys(filter(None, prefixes)):
            by_length.setdefault(len(prefix), []).append(prefix)
        for length, members in by_length.items():
            rows = max(1, self._max_batch_tokens // (len(prompt) + length))
            for start in range(0, len(members), rows):
                chunk = members[start : start + rows]
                ids = torch.tensor(chunk, device=self._model.device)
                own = copy.deepcopy(cache)
                own.reorder_cache(ids.new_zeros(len(chunk)))
                mask = ids.new_ones(len(chunk), len(prompt) + length)
                logits = self._forward(ids, mask, own, keep=1)[:, -1]
                found.update(zip(chunk, _exact(logits), strict=True))
        return [found[prefix] for prefix in prefixes]

    def _prefilled(self, prompt: list[int]) -> tuple[Any, Tensor]:
        """Keys and values of one prompt, and the distribution after it."""
        if self._kept is None or self._kept[0] != prompt:
            self._kept = None
            ids, mask = self._pad([prompt])
            cache: Any = DynamicCache(config=self._model.config)
            logits = self._forward(ids, mask, cache, keep=1)[:, -1]
            self._kept = (prompt, cache, _exact(logits)[0])
        return self._kept[1:]

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


def _exact(logits: Tensor) -> Tensor:
    """Log-probabilities of raw logits in double precision, which not every GPU has."""
    logprobs = torch.log_softmax(logits.cpu().double(), dim=-1)
    check_finite(logprobs.amax(dim=-1))
    return logprobs


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
