"""The devices that models compute on, and with what precision."""

from pathlib import Path
from typing import Literal

from hopscope.runtime.errors import UsageError

Device = Literal["auto", "cpu", "cuda", "mps"]
"""`auto` takes CUDA, then Apple's GPU, then the processor."""
Precision = Literal["single", "bfloat16", "eight-bits"]
"""Of a model's linear maps."""


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


def free_bytes(device: str) -> int | None:
    """Free memory of a device; on the processor, the memory that a further process could take.
    None if the system does not tell."""
    import torch

    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(device)[0])
    if device != "cpu":
        return None
    found = [left for left in (_of_machine(), _of_group()) if left is not None]
    return min(found, default=None)


def _of_machine(memory: Path = Path("/proc/meminfo")) -> int | None:
    try:
        lines = memory.read_text().splitlines()
    except OSError:
        return None
    kilobytes = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return next((int(amount) * 1024 for amount in kilobytes), None)


def _of_group(folder: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What is left of the limit of a container, without its file cache, which gives way."""
    try:
        most = (folder / "memory.max").read_text().strip()
        taken = int((folder / "memory.current").read_text())
        cached = [
            int(line.split()[1])
            for line in (folder / "memory.stat").read_text().splitlines()
            if line.startswith("inactive_file ")
        ]
    except (OSError, ValueError):
        return None
    return max(0, int(most) - taken + sum(cached)) if most.isdigit() else None
