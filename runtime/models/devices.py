"""The devices that models compute on."""

from typing import Literal

Device = Literal["auto", "cpu", "cuda", "mps"]
"""`auto` takes CUDA, then Apple's GPU, then the processor."""
