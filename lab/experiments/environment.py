"""Versions and hardware for the record of an experiment, and deterministic computation."""

import os
import platform
import socket
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import JsonValue

from hopscope.runtime.models.installed import installed

PACKAGES = (
    "hopscope", "torch", "transformers", "tokenizers", "numpy", "langgraph", "bm25s", "PyStemmer",
    "faiss-cpu", "faiss-gpu-cu12", "pyserini", "vllm", "scipy", "sqlalchemy", "ray",
)  # fmt: skip
"""Packages that results or their storage may depend on."""


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, JsonValue]:
    """Versions of Python and of the installed ones of these packages."""
    found: dict[str, JsonValue] = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, JsonValue]:
    """Processors and memory of this machine; accelerators and threads, if torch is loaded: nothing
    else computes with them, and it takes seconds to load."""
    computing: dict[str, JsonValue] = {}
    if "torch" in sys.modules:
        import torch

        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        computing = {"accelerators": [*names], "threads": torch.get_num_threads()}
    return {
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory(),
        **computing,
        "worker_bytes": _peak_memory(),
    }


def make_deterministic() -> None:
    """Compute in one thread, for a fixed order of sums, and with deterministic algorithms only."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if not installed():
        return
    import torch

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def owner() -> str:
    """The identity of this process, for `is_dead`: host, process id and start time."""
    return f"{socket.gethostname()}/{os.getpid()}/{_began(os.getpid())}"


def is_dead(owner: str) -> bool:
    """Whether the process of this identity is known to have ended; False for other hosts."""
    host, pid, began = owner.rsplit("/", 2)
    return host == socket.gethostname() and (not _lives(int(pid)) or _began(int(pid)) != began)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _began(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty if unknown.

    Process ids are reused; an id with its start time is not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _peak_memory() -> int | None:
    """Peak memory of this process in bytes, read once its models are loaded."""
    try:
        import resource  # Windows has none
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if platform.system() == "Darwin" else most * 1024


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
