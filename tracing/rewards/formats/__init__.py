"""Files of turn rewards by file name: each writes those of a trainer, as JSON."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from pydantic import JsonValue

from hopscope.tracing.rewards.turns import TurnRewards

KIND = "reward_formats"
"""The name of this kind in messages and entry points; see `runtime.components`."""


class RewardFormat(Protocol):
    """A file of rewards: JSON lines."""

    @property
    def levels(self) -> bool:
        """Whether the trainer takes levels, which not every rule has."""
        ...

    def lines(self, batch: Iterable[TurnRewards]) -> Iterator[JsonValue]:
        """The lines of the file, of runs in this order."""
        ...
