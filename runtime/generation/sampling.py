"""Draws tokens, each sample from its own random stream.

Invariant: step `t` of a sample is decided by numbers that depend on the request's seed, the prompt,
the sample's index and `t` alone. Neither the batch a sample is computed in nor the number of its
siblings changes them, and there is no generator whose state could be disturbed.

The other rows of a batch change how a row is rounded, and near a tie rounding decides.
`close_calls` tells these draws, so that they can be decided by numbers of the row alone. Then the
tokens of a sample do not depend on its company, as long as rounding stays within its bound.

One number is placed in the cumulative distribution. Where it meets a rare token, all rare tokens
draw lots, by the Gumbel-max trick: a large vocabulary has thousands of them, and rounding moves
their places in the distribution by more than their probabilities, but seldom changes who wins.

Source: Gumbel-max (Maddison, Tarlow & Minka 2014, A* Sampling, section 2), here as the same race of
exponential times.
"""

import hashlib
from collections.abc import Sequence
from math import inf, log
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from hopscope.runtime.models.batches import must_be_alone

ROUNDING = 1e-4
"""Bound for the part of a log-probability, in nats, that depends on the batch, in single precision.
The embedded reader's changed by 2e-6 at most."""
TYPICAL_ROUNDING = 1e-5
"""Bound for its root mean square over tokens, several times what it was."""
RARE = 1e-3
"""Probability below which a token is rare."""


def stream_key(seed: int, prompt_ids: Sequence[int], index: int) -> bytes:
    """The random stream of sample `index`."""
    return hashlib.sha256(f"{seed}/{index}/{','.join(map(str, prompt_ids))}".encode()).digest()


class Chance(NamedTuple):
    """The random numbers of a step of a sample."""

    stream: bytes
    step: int

    @property
    def uniform(self) -> float:
        """A number in [0, 1)."""
        return (int.from_bytes(self._bits[:8], "big") >> 11) / 2.0**53

    def lots(self, count: int) -> Tensor:
        """Independent numbers of the exponential distribution with mean 1, (number,)."""
        raw = np.random.Philox(key=int.from_bytes(self._bits[8:24], "big")).random_raw(count)
        return torch.from_numpy(-np.log(((raw >> 12) + 0.5) / 2.0**52))

    @property
    def _bits(self) -> bytes:
        return hashlib.sha256(self.stream + self.step.to_bytes(8, "big")).digest()


def distribution(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies (nats, whole vocabulary) of raw logits, in float32."""
    logprobs = torch.log_softmax(logits.float(), dim=-1)
    return logprobs, torch.special.entr(logprobs.exp()).sum(dim=-1)


def draw(logprobs: Tensor, temperatures: Sequence[float], chances: Sequence[Chance]) -> Tensor:
    """A token for each row of `logprobs`: the likeliest at temperature 0, else the one at which
    the cumulative distribution passes the row's uniform number, if that is not rare; else the rare
    one with the greatest ratio of probability to lot."""
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
    weights = rows.exp()
    cumulative = weights.cumsum(dim=-1)
    total = cumulative[:, -1:].contiguous()
    wanted = total.new_tensor([[chances[row].uniform] for row in sampled])
    drawn = torch.searchsorted(cumulative, total * wanted, right=True)
    # Rounding can carry the product up to the total: then take the last token that adds to it.
    last = torch.searchsorted(cumulative, total)
    drawn = torch.minimum(drawn, last)
    rare = weights.gather(-1, drawn) < RARE * total
    for place in rare.flatten().nonzero().flatten().tolist():
        among = weights[place] < RARE * total[place]
        lots = chances[sampled[place]].lots(len(among)).to(rows.device)
        drawn[place] = (weights[place] * among / lots).argmax()
    greedy[sampled] = drawn.squeeze(-1).to(greedy.device)
    return greedy


def close_calls(
    logprobs: Tensor, temperatures: Sequence[float], chances: Sequence[Chance]
) -> list[int]:
    """The rows whose token, as drawn by `draw`, could be another one by rounding.

    At temperature 0 the likeliest two may change places. Else the uniform number may fall to the
    other side of a bound between two tokens in the cumulative distribution, unless both are rare.
    Of rare tokens another may win, and a token may become rare.
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
        shares = torch.softmax(logprobs[sampled].cpu().double() / heat, dim=-1)
        own = [chances[row] for row in sampled]
        near = _close_samples(shares, own, heat)
        close += [row for row, is_near in zip(sampled, near.tolist(), strict=True) if is_near]
    return close


def _close_samples(shares: Tensor, chances: Sequence[Chance], heat: Tensor) -> Tensor:
    """Whether each sample is close, (sample,).

    Args:
        shares: probabilities, (sample, token).
        heat: temperatures, (sample, 1).
    """
    wanted = torch.tensor([[chance.uniform] for chance in chances], dtype=torch.float64)
    until, squares = shares.cumsum(dim=-1), shares.square().cumsum(dim=-1)
    met = torch.searchsorted(until, wanted, right=True).clamp_max(shares.shape[-1] - 1)
    share, above, until_above = (each.gather(-1, met) for each in (shares, until, squares))
    rounding = TYPICAL_ROUNDING / heat

    def meets(bound: Tensor, before: Tensor, of: int | slice) -> Tensor:
        """Whether rounding may carry bounds over the number. The rounding of tokens is about
        independent, so it moves a bound by the root of what each token moves it by, squared;
        `before`: the squared probabilities of the tokens before the bound, together."""
        after = (squares[of, -1:] - before).clamp_min(0)
        moved = rounding[of] * ((1 - bound).square() * before + bound.square() * after).sqrt()
        return (bound - wanted[of]).abs() <= moved

    each = slice(None)
    near = meets(above, until_above, each)
    near |= meets(above - share, until_above - share.square(), each)
    near &= share >= RARE
    apart = 2 * ROUNDING / heat
    near |= (share.logit() - log(RARE / (1 - RARE))).abs() <= apart
    for number in (share < RARE).flatten().nonzero().flatten().tolist():
        common = shares[number].log() >= log(RARE) - apart[number]
        decides = common.clone()
        decides[:-1] |= common[1:]  # the bound behind each token
        decides[-1] = False
        at_a_bound = meets(until[number], squares[number], number)[decides].any()
        near[number] |= bool(at_a_bound) or _close_race(
            shares[number], chances[number], float(apart[number])
        )
    return near.flatten()


def _close_race(shares: Tensor, chance: Chance, apart: float) -> bool:
    """Whether another rare token could win if two log-probabilities moved apart by `apart`.

    Args:
        shares: probabilities, (token,).
    """
    logs = shares.log()
    ranks = (logs - chance.lots(len(shares)).log()).masked_fill(logs >= log(RARE) + apart, -inf)
    best = ranks.topk(min(2, len(ranks)))
    if logs[best.indices[0]] >= log(RARE) - apart:  # it may be common
        return True
    return len(ranks) > 1 and bool(best.values[0] - best.values[1] <= apart)
