"""Linear maps of many tokens on the processor, with their weights laid out once for it.

torch multiplies matrices by Intel's library, which is a tenth to a fifth slower on other makes of
processor than oneDNN, which torch has too and which wants the weights in a layout of its own.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

Linear = Callable[[Tensor], Tensor]
"""From (token, input) to (token, output)."""
Build = Callable[[Sequence[nn.Linear]], Linear]
"""One map from several of the same input; their outputs stand side by side."""


def joined(parts: Sequence[nn.Linear]) -> tuple[Tensor, Tensor]:
    """The weights, (output, input), and the bias of several maps as one."""
    zero = (part.weight.new_zeros(len(part.weight)) for part in parts)
    biases = [part.bias if part.bias is not None else next(zero) for part in parts]
    weights = torch.cat([part.weight.detach() for part in parts])
    return weights, torch.cat([bias.detach() for bias in biases])


def laid_out(parts: Sequence[nn.Linear]) -> Linear:
    """In single precision, by oneDNN if torch has it; the results differ by rounding alone."""
    weight, bias = joined(parts)
    if not torch.backends.mkldnn.is_available() or weight.dtype != torch.float32:
        return lambda tokens: linear(tokens, weight, bias)
    operations = torch.ops.mkldnn
    own = operations._reorder_linear_weight(weight)
    return lambda tokens: operations._linear_pointwise(tokens, own, bias, "none", [], "")
