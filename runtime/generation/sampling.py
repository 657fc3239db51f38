"""Draws tokens, each sample from its own random stream.

Invariant: step `t` of a sample is decided by one number that depends on the request's seed, the
prompt, the sample's index and `t` alone. Neither the batch a sample is computed in nor the number
of its siblings changes it, and there is no generator whose state could be disturbed.
"""

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from hopscope.runtime.models.batches import must_be_alone


def stream_key(seed: int, prompt_ids: Sequence[int], index: int) -> bytes:
    """The random stream of sample `index`."""
    return hashlib.sha256(f"{seed}/{index}/{','.join(map(str, prompt_ids))}".encode()).digest()


def uniform(stream: bytes, step: int) -> float:
    """The stream's number for a step, in [0, 1)."""
    bits = hashlib.sha256(stream + step.to_bytes(8, "big")).digest()[:8]
    return (int.from_bytes(bits, "big") >> 11) / 2.0**53


def distribution(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies (nats, whole vocabulary) of raw logits, in float32."""
    logprobs = torch.log_softmax(logits.float(), dim=-1)
    return logprobs, torch.special.entr(logprobs.exp()).sum(dim=-1)


def draw(logprobs: Tensor, temperatures: Sequence[float], uniforms: Sequence[float]) -> Tensor:
    """A token for each row of `logprobs`: the likeliest at temperature 0, else the one at which
    the cumulative distribution passes the row's uniform number."""
    greedy = logprobs.argmax(dim=-1)
    sampled = [row for row, temperature in enumerate(temperatures) if temperature > 0]
    if not sampled:
        return greedy
    # Apple's GPU has no float64, and torch has no running sum on CUDA whose order never varies.
    elsewhere = logprobs.device.type == "mps" or must_be_alone()
    rows = logprobs[sampled].to("cpu" if elsewhere else logprobs.device)
    rows = rows.double()
    rows -= rows.amax(dim=-1, keepdim=True)
    rows /= rows.new_tensor([[temperatures[row]] for row in sampled])
    cumulative = rows.exp().cumsum(dim=-1)
    total = cumulative[:, -1:].contiguous()
    drawn = torch.searchsorted(
        cumulative, total * total.new_tensor([[uniforms[row]] for row in sampled]), right=True
    )
    # Rounding can carry the product up to the total: then take the last token that adds to it.
    last = torch.searchsorted(cumulative, total)
    greedy[sampled] = torch.minimum(drawn, last).squeeze(-1).to(greedy.device)
    return greedy
