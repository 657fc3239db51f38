"""Linear maps of many tokens on the processor, with their weights laid out once for it.

torch multiplies matrices by Intel's library, which is a tenth to a fifth slower on other makes of
processor than oneDNN, which torch has too and which wants the weights in a layout of its own.
"""

import sys
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from hopscope.runtime.models.devices import Precision

ROUNDED = (16, 4), (128, 8), (sys.maxsize, 16)
"""Up to so many tokens, the step between their numbers."""

Linear = Callable[[Tensor], Tensor]
"""From (token, input) to (token, output). `bfloat16` returns numbers of its own type, and takes
those as well as single precision."""
Build = Callable[[Sequence[nn.Linear]], Linear]
"""One map from several of the same input; their outputs stand side by side."""


def build(precision: Precision) -> Build:
    """What makes maps of this precision."""
    makers: dict[Precision, Build] = {
        "single": laid_out,
        "bfloat16": bfloat16,
        "eight-bits": eight_bits,
    }
    return makers[precision]


def multiplies(precision: Precision) -> bool:
    """Whether this processor multiplies numbers of this precision, and sums the products rightly.

    Where a processor has no instructions for dot products of eight bits (VNNI), oneDNN adds pairs
    of products in sixteen bits, which are too few.
    """
    if precision == "single":
        return True
    if precision == "eight-bits":
        largest = torch.full((32, 32), 127, dtype=torch.int8)
        return bool((torch._int_mm(largest, largest) == 32 * 127**2).all())
    return torch.backends.mkldnn.is_available() and bool(
        torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )


def joined(parts: Sequence[nn.Linear]) -> tuple[Tensor, Tensor]:
    """The weights, (output, input), and the bias of several maps as one."""
    biases = [
        part.weight.new_zeros(part.out_features) if part.bias is None else part.bias
        for part in parts
    ]
    weights = torch.cat([part.weight.detach() for part in parts])
    return weights, torch.cat([bias.detach() for bias in biases])


def laid_out(parts: Sequence[nn.Linear]) -> Linear:
    """In single precision, as `product`."""
    return product(*joined(parts))


def product(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """By oneDNN if torch has it, on the processor in single precision; the results differ by
    rounding alone."""
    laid = torch.backends.mkldnn.is_available() and weight.device.type == "cpu"
    if not laid or weight.dtype != torch.float32:
        return lambda tokens: linear(tokens, weight, bias)
    operations = torch.ops.mkldnn
    own = operations._reorder_linear_weight(weight)
    return in_few_sizes(
        lambda tokens: operations._linear_pointwise(tokens, own, bias, "none", [], "")
    )


def in_few_sizes(linear_map: Linear) -> Linear:
    """The same map, which computes `rounded` numbers of tokens."""

    def map_tokens(tokens: Tensor) -> Tensor:
        count = len(tokens)
        beyond = rounded(count) - count
        return linear_map(pad(tokens, (0, 0, 0, beyond)))[:count] if beyond else linear_map(tokens)

    return map_tokens


def rounded(tokens: int) -> int:
    """As many tokens or a few more, of few different numbers: for each number and map oneDNN makes
    code, which costs .3 ms and .6 MB, and keeps that of the last thousand."""
    step = next(step for most, step in ROUNDED if tokens <= most)
    return -(-tokens // step) * step


def bfloat16(parts: Sequence[nn.Linear]) -> Linear:
    """In numbers with the exponents of single precision and 8 bits of mantissa, many times faster
    where the processor has units for their matrices (AMX). Sums are in single precision.

    The results have the same type.
    """
    weight, bias = joined(parts)
    operations = torch.ops.mkldnn
    own = operations._reorder_linear_weight(weight.bfloat16())
    short = bias.bfloat16()
    return in_few_sizes(
        lambda tokens: operations._linear_pointwise(tokens.bfloat16(), own, short, "none", [], "")
    )


def eight_bits(parts: Sequence[nn.Linear]) -> Linear:
    """In whole numbers of eight bits, several times faster where the processor multiplies them
    (`multiplies`; elsewhere sums are wrong).

    Each output's weights and each token's values are scaled by their largest size to ±127 and
    rounded. Sums are exact, so that a token's outputs do not depend on the other tokens.
    """
    weight, bias = joined(parts)
    steps = _steps(weight)
    whole = (weight / steps).round().to(torch.int8).t()
    steps = steps.t()

    def map_tokens(tokens: Tensor) -> Tensor:
        own = _steps(tokens)
        sums = torch._int_mm((tokens / own).round_().to(torch.int8), whole)
        # Converted first: torch multiplies numbers of different types several times slower.
        return sums.float().mul_(own).mul_(steps).add_(bias)

    return in_few_sizes(map_tokens)


def _steps(values: Tensor) -> Tensor:
    """The size of 1 for each row, (row, 1)."""
    return values.abs().amax(dim=1, keepdim=True).clamp_min(1e-30) / 127
