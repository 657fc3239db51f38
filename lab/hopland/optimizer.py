"""Muon: momentum whose update is made orthogonal, for the matrices inside the layers.

Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks": the momentum of
each weight matrix is replaced by the nearest semi-orthogonal matrix, found by five
Newton-Schulz steps, so that rare directions are learned as fast as common ones. In float32,
because the machines this trains on need not know bfloat16 (torch's own Muon assumes it).
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch

COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonal(matrices: torch.Tensor, *, steps: int = 5) -> torch.Tensor:
    """Nearly the closest semi-orthogonal matrices, (matrix, row, column)."""
    a, b, c = COEFFICIENTS
    wide = matrices.shape[1] <= matrices.shape[2]
    x = matrices if wide else matrices.transpose(1, 2)
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        squared = x @ x.transpose(1, 2)
        x = a * x + (b * squared + c * squared @ squared) @ x
    return x if wide else x.transpose(1, 2)


class Muon(torch.optim.Optimizer):
    """Updates all matrices of one shape together; an update's root mean square is 0.2 `lr`."""

    def __init__(
        self,
        matrices: Iterable[torch.Tensor],
        *,
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(
            list(matrices), {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        )

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """One update with Nesterov momentum."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[torch.Tensor]] = defaultdict(list)
            for matrix in group["params"]:
                shapes[matrix.shape].append(matrix)
            for shape, matrices in shapes.items():
                directions = []
                for matrix in matrices:
                    state = self.state[matrix]
                    if "momentum" not in state:
                        state["momentum"] = torch.zeros_like(matrix)
                    state["momentum"].lerp_(matrix.grad, 1 - group["momentum"])
                    directions.append(matrix.grad.lerp(state["momentum"], group["momentum"]))
                updates = orthogonal(torch.stack(directions)) * (0.2 * max(shape) ** 0.5)
                for matrix, update in zip(matrices, updates, strict=True):
                    matrix.mul_(1 - group["lr"] * group["weight_decay"])
                    matrix.sub_(update, alpha=group["lr"])
