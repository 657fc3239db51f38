"""Prints what `pip install hopscope` takes on the disk, by distribution, and how long its import
takes. Run it with the Python of an environment that holds nothing else."""

import subprocess
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

BROUGHT = {"pip", "setuptools"}
"""What an environment has before."""
ROOT = Path(__file__).parents[2]


def taken(file: Path) -> int:
    """Bytes on the disk, whole blocks; 0 if it is not there."""
    return file.stat().st_blocks * 512 if file.is_file() else 0


def size(distribution: Distribution) -> int:
    return sum(
        taken(Path(str(distribution.locate_file(file)))) for file in distribution.files or []
    )


def import_seconds() -> float:
    """The shortest of five, in processes of their own."""
    code = (
        "from time import perf_counter as now; begun = now(); import hopscope; print(now() - begun)"
    )
    told = (subprocess.check_output([sys.executable, "-c", code], text=True) for _ in range(5))
    return min(map(float, told))


def main() -> None:
    sizes = {each.name: size(each) for each in distributions() if each.name not in BROUGHT}
    # An editable installation only points here.
    rooms = (room.resolve() for room in (ROOT / "src" / "hopscope").iterdir() if room.is_dir())
    sizes["hopscope"] = sum(taken(file) for room in rooms for file in room.rglob("*"))
    for name, count in sorted(sizes.items(), key=lambda each: -each[1])[:12]:
        print(f"{count / 1e6:7.1f} MB  {name}")
    print(f"{sum(sizes.values()) / 1e6:7.1f} MB  in {len(sizes)} distributions")
    print(f"{import_seconds():7.3f} s   import hopscope")


if __name__ == "__main__":
    main()
