"""Rows that are decoded, and the drawing of their next tokens."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from hopscope.runtime.errors import ReaderError
from hopscope.runtime.generation.draft import Draft
from hopscope.runtime.generation.prefixes import Tokens
from hopscope.runtime.generation.sampling import Chance, close_calls, distribution, draw

AHEAD = 32
"""Tokens for which a running draft has room. Where replies are longer and there is no more memory,
some rows wait."""


class Row(NamedTuple):
    """Drafts with equal tokens so far."""

    ids: Tokens
    """The prompt and the drafts' tokens."""
    drafts: list[Draft]

    @property
    def width(self) -> int:
        """Positions that are kept for it as one row."""
        return len(self.ids) + min(AHEAD, max(draft.left for draft in self.drafts))

    @property
    def ahead(self) -> int:
        """Positions that are kept for what the drafts add, if each goes its own way."""
        return sum(min(AHEAD, draft.left) for draft in self.drafts)


class Drawn(NamedTuple):
    """The rows that continue, each with the place of its row before."""

    parents: list[int]
    rows: list[Row]


def draw_next(
    rows: Sequence[Row], logits: Tensor, alone: Callable[[Tokens], Tensor] | None = None
) -> Drawn:
    """Draw each draft's next token from the logits after its row, (row, token). Drafts that
    continue with equal tokens share a row. The children of a row stand side by side.

    Args:
        alone: the logits after a sequence without company, (1, token), which decide close calls.
    """
    drafts = [(place, draft) for place, row in enumerate(rows) for draft in row.drafts]
    steps = _steps(
        [draft for _, draft in drafts], [place for place, _ in drafts], logits, alone is not None
    )
    again = {drafts[number][0] for number, step in enumerate(steps) if step.close}
    if alone is not None:
        for place in sorted(again):
            close = [n for n, step in enumerate(steps) if step.close and drafts[n][0] == place]
            decided = _steps(
                [drafts[n][1] for n in close], [0] * len(close), alone(rows[place].ids), False
            )
            for number, step in zip(close, decided, strict=True):
                steps[number] = step
    going_on: dict[tuple[int, int], list[Draft]] = {}
    for (place, draft), step in zip(drafts, steps, strict=True):
        continued = draft.add(step.token, step.logprob, step.entropy)
        if draft.finished is None:
            going_on.setdefault((place, continued), []).append(draft)
    children = [Row((*rows[place].ids, token), own) for (place, token), own in going_on.items()]
    return Drawn([place for place, _ in going_on], children)


class _Step(NamedTuple):
    token: int
    logprob: float
    entropy: float
    close: bool
    """Whether rounding may have decided it."""


def _steps(
    drafts: Sequence[Draft], places: Sequence[int], logits: Tensor, judging: bool
) -> list[_Step]:
    """The next token of each draft, from the logits at its place; with `judging`, whether it is
    close."""
    logprobs, entropies = distribution(logits)
    check_finite(entropies)
    own = logprobs[torch.tensor(places, device=logits.device)]
    temperatures = [draft.temperature for draft in drafts]
    chances = [Chance(draft.stream, draft.steps) for draft in drafts]
    drawn = draw(own, temperatures, chances)
    close = set(close_calls(own, temperatures, chances)) if judging else set()
    for number, draft in enumerate(drafts):
        if draft.given:
            drawn[number] = draft.given[0]
            close.discard(number)
    chosen = own.gather(-1, drawn[:, None]).squeeze(-1).tolist()
    entropy = entropies.tolist()
    return [
        _Step(token, logprob, entropy[place], number in close)
        for number, (token, logprob, place) in enumerate(
            zip(drawn.tolist(), chosen, places, strict=True)
        )
    ]


def check_finite(numbers: Tensor) -> None:
    """Refuse numbers that cannot be recorded: overflow, or a given token of probability 0.

    Raises:
        ReaderError: a number is not finite.
    """
    if not bool(torch.isfinite(numbers).all()):
        raise ReaderError(
            "the model's probabilities are not finite: it overflowed (try dtype float32) "
            "or gives a required token probability 0"
        )
