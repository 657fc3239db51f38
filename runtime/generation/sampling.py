"""Draws tokens, each sample from its own random stream.

Invariant: step `t` of a sample is decided by one number that depends on the request's seed, the
prompt, the sample's index and `t` alone. Neither the batch a sample is computed in nor the number
of its siblings changes it, and there is no generator whose state could be disturbed.

The other rows of a batch change how a row is rounded, and near a tie rounding decides.
`close_calls` tells these draws, so that they can be decided by numbers of the row alone. Then the
tokens of a sample do not depend on its company, as long as rounding stays within its bound.
"""

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from hopscope.runtime.models.batches import must_be_alone

ROUNDING = 1e-4
"""Bound for the part of a log-probability, in nats, that depends on the batch, in single precision.
The embedded reader's changed by 2e-6 at most."""
TYPICAL_ROUNDING = 1e-5
"""Bound for its root mean square over tokens, several times what it was."""


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


def close_calls(
    logprobs: Tensor, temperatures: Sequence[float], uniforms: Sequence[float], drawn: Tensor
) -> list[int]:
    """The rows whose token, as drawn by `draw`, could be another one by rounding.

    At temperature 0 the likeliest two may change places. Else the uniform number may fall to the
    other side of a bound between two tokens in the cumulative distribution. The rounding of
    different tokens is about independent, so it moves a bound by about the root of the sum of
    their squared probabilities, times that of one.
    """
    greedy = [row for row, temperature in enumerate(temperatures) if temperature <= 0]
    sampled = [row for row, temperature in enumerate(temperatures) if temperature > 0]
    close: list[int] = []
    if greedy and logprobs.shape[-1] > 1:
        best = logprobs[greedy].topk(2).values
        near = best[:, 0] - best[:, 1] <= 2 * ROUNDING
        close += [row for row, is_near in zip(greedy, near.tolist(), strict=True) if is_near]
    if sampled:
        heat = torch.tensor([[temperatures[row]] for row in sampled])
        wanted = torch.tensor([[uniforms[row]] for row in sampled], dtype=torch.float64)
        rows = torch.softmax(logprobs[sampled].cpu().double() / heat, dim=-1)
        until = rows.cumsum(dim=-1)
        token = drawn[sampled].cpu()[:, None]
        above = until.gather(-1, token)
        below = above - rows.gather(-1, token)
        moved = TYPICAL_ROUNDING / heat * rows.square().sum(dim=-1, keepdim=True).sqrt()
        near_above = (above - wanted <= moved) & (above < 1 - moved)
        near_below = (wanted - below <= moved) & (below > moved)
        near = (near_above | near_below).squeeze(-1)
        close += [row for row, is_near in zip(sampled, near.tolist(), strict=True) if is_near]
    return close
