"""The progress of building an index."""

from collections.abc import Callable
from typing import Literal

Phase = Literal["read", "score", "encode", "write"]
Progress = Callable[[Phase, int], None]
"""Called with the phase and the number of passages so far."""


def silent(phase: Phase, passages: int) -> None:
    """Report nothing."""
