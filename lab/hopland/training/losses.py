"""The losses of a batch, and the batches of copying at the start and in between."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional
from transformers import LlamaForCausalLM

from hopscope.lab.hopland.training import guidance
from hopscope.lab.hopland.training.blocks import Batch


@dataclass(frozen=True)
class Losses:
    """The losses and the accuracy of one batch."""

    answers: torch.Tensor
    """Weighted cross-entropy of the next token."""
    pointing: torch.Tensor
    right: float
    """The share of right predictions among the tokens of full weight."""


def losses(model: LlamaForCausalLM, batch: Batch, step: Callable[..., torch.Tensor]) -> Losses:
    """Run a batch forward, in bfloat16 where that is safe."""
    with torch.autocast("cpu", torch.bfloat16):
        inputs, hidden = guidance.states(model, batch, step)
        weights = batch.weights[:, 1:]
        counted = weights > 0
        logits = model.lm_head(hidden[:, :-1][counted]).float()
        pointed = guidance.pointing(model, inputs, batch)
    target, weight = batch.ids[:, 1:][counted], weights[counted]
    each = functional.cross_entropy(logits, target, reduction="none")
    full = weight >= 1
    right = (logits.detach().argmax(-1) == target)[full].float().mean()
    return Losses((each * weight).sum() / weights.sum(), pointed, float(right))


def copying(alphabet: torch.Tensor, layers: int, rng: torch.Generator) -> Batch:
    """Random tokens of an alphabet repeated with a random period; only the repeats count.

    Guided: the first layer to the token before, the second to the token that comes next.
    """
    rows, length = 32, 64
    tokens = alphabet[torch.randint(len(alphabet), (rows, length), generator=rng)]
    periods = torch.randint(4, 32, (rows,), generator=rng)
    places = torch.arange(length).expand(rows, -1)
    ids = tokens.gather(1, places % periods[:, None])
    weights = (places >= periods[:, None]).float()
    row, place = weights.nonzero().T
    at, head = torch.full_like(row, layers - 1), torch.zeros_like(row)
    previous = torch.stack([row, place - 1, place - 2, at, head], 1)
    source = torch.stack([row, place - 1, place - periods[row], at - 1, head], 1)
    sources = torch.cat([previous, source])
    places = places.contiguous()
    every, none = torch.ones_like(ids, dtype=torch.bool), torch.empty(rows, 0, 0, dtype=torch.int64)
    return Batch(
        ids, torch.zeros_like(ids), places, weights, sources, shown=every, own=none, home=places
    )


class Average:
    """Running averages of losses, corrected for the short past at the start."""

    def __init__(self, decay: float) -> None:
        self.decay, self.weight = decay, 0.0
        self.sums = {"answers": 0.0, "pointing": 0.0, "right": 0.0}

    def add(self, found: Losses) -> None:
        """Add one step's losses."""
        self.weight = self.decay * self.weight + 1 - self.decay
        new = (float(found.answers.detach()), float(found.pointing.detach()), found.right)
        for (name, old), value in zip(self.sums.items(), new, strict=True):
            self.sums[name] = self.decay * old + (1 - self.decay) * value

    @property
    def values(self) -> dict[str, float]:
        """The averages by name."""
        return {name: value / max(self.weight, 1e-9) for name, value in self.sums.items()}

    @property
    def settled(self) -> bool:
        """Whether the averages cover enough steps for a decision."""
        return self.weight > 0.8

    def rounded(self) -> dict[str, float]:
        """The averages for the log."""
        return {name: round(value, 4) for name, value in self.values.items()}
