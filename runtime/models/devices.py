"""The devices that models compute on."""

from typing import Literal

from hopscope.runtime.errors import UsageError

Device = Literal["auto", "cpu", "cuda", "mps"]
"""`auto` takes CUDA, then Apple's GPU, then the processor."""


def choose_device(device: str) -> str:
    """The device of an option, checked to be available.

    Raises:
        UsageError: it is not available.
    """
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device == "auto":
        return next((name for name, present in there.items() if present), "cpu")
    if not there.get(device, True):
        raise UsageError(f"device {device} is not available here; use auto or cpu")
    return device
