"""Several questions over one context in one sequence, each exactly as if it stood alone.

A sequence is the system turn (segment 0) followed by question blocks (segments 1, 2, …),
each a user turn and an assistant turn. Invariant: a block sees the system turn and itself
only, and its positions go on from the system turn's end, so that its logits equal those of
the single conversation the product sends. The context is paid for once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedTokenizerFast

from hopscope.lab.hopland.contexts import Example
from hopscope.lab.hopland.tokenizer import ASSISTANT, BOS, EOS, SYSTEM, USER
from hopscope.runtime import prompts


@dataclass(frozen=True)
class Packed:
    """One training sequence, token by token."""

    ids: list[int]
    segments: list[int]
    """0 for the system turn, then the number of the block."""
    positions: list[int]
    weights: list[float]
    """How much the loss counts the prediction of this token."""


@dataclass(frozen=True)
class Batch:
    """Packed sequences, padded on the right; segment -1 marks padding."""

    ids: torch.Tensor  # (sequence, token)
    segments: torch.Tensor  # (sequence, token)
    positions: torch.Tensor  # (sequence, token)
    weights: torch.Tensor  # (sequence, token)


def pack(
    tokenizer: PreTrainedTokenizerFast, examples: Sequence[Example], *, passage_weight: float
) -> list[Packed]:
    """Lay out examples; all their texts are tokenised in one call."""
    texts: list[str] = []
    for example in examples:
        texts.append(BOS + SYSTEM + prompts.system(example.passages).content)
        for asked, reasoned in example.asked:
            ask = prompts.chain_of_thought if reasoned else prompts.short_answer
            texts.append(USER + ask(asked.text).messages[-1].content + ASSISTANT)
            texts.append((asked.reasoning if reasoned else asked.answer) + EOS)
    encoded = iter(e.ids for e in tokenizer.backend_tokenizer.encode_batch_fast(texts))
    packed = []
    for example in examples:
        prefix = next(encoded)
        ids, segments = list(prefix), [0] * len(prefix)
        positions, weights = list(range(len(prefix))), [passage_weight] * len(prefix)
        for number in range(1, len(example.asked) + 1):
            user, answer = next(encoded), next(encoded)
            ids += user + answer
            segments += [number] * (len(user) + len(answer))
            positions += range(len(prefix), len(prefix) + len(user) + len(answer))
            weights += [0.0] * len(user) + [1.0] * len(answer)
        packed.append(Packed(ids, segments, positions, weights))
    return packed


def collate(packed: Sequence[Packed]) -> Batch:
    """Pad to the longest sequence."""
    longest = max(len(p.ids) for p in packed)

    def padded(rows: Sequence[Sequence[float]], fill: float, dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows], dtype=dtype)

    return Batch(
        ids=padded([p.ids for p in packed], 0, torch.int64),
        segments=padded([p.segments for p in packed], -1, torch.int64),
        positions=padded([p.positions for p in packed], 0, torch.int64),
        weights=padded([p.weights for p in packed], 0.0, torch.float32),
    )


def mask(segments: torch.Tensor) -> torch.Tensor:
    """Who may attend to whom, (sequence, 1, query, key): the system turn and the own block."""
    length = segments.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    query, key = segments[:, :, None], segments[:, None, :]
    return (((key == 0) | (key == query)) & causal)[:, None]
