"""The memory that a piece of work takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Memory:
    """The peak memory of this process inside the block, in bytes, minus that before it. Only Linux
    reports and resets it; elsewhere it is unknown."""

    def __init__(self) -> None:
        self.bytes: int | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        before = _status("VmRSS")
        if before is not None:
            Path("/proc/self/clear_refs").write_text("5")
        yield
        after = _status("VmHWM")
        if before is not None and after is not None:
            self.bytes = max(0, after - before)


def _status(name: str) -> int | None:
    file = Path("/proc/self/status")
    if not file.exists():
        return None
    [line] = [line for line in file.read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) * 1024
