"""What building an index tells while it goes on."""

from collections.abc import Callable
from typing import Literal

Phase = Literal["read", "score", "encode", "write"]
Progress = Callable[[Phase, int], None]
"""Told what is being done and the number of passages so far."""


def silent(phase: Phase, passages: int) -> None:
    """Tell nobody."""
