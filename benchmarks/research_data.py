"""The option `--data`: the folder of public research data for some benchmarks."""

import os
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

VARIABLE = "HOPSCOPE_TEST_DATA"
"""The variable that names the folder, for tests, too (tests/conftest.py)."""


def add_option(parser: ArgumentParser) -> None:
    """Adds `--data`."""
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get(VARIABLE),
        metavar="FOLDER",
        help=f"folder of the research data; {VARIABLE} names it, too",
    )


def missing(folder: Path | None, names: Sequence[str]) -> str | None:
    """The reason why these files cannot be read, with the remedy; None if they exist."""
    if folder is None:
        return f"give --data FOLDER or set {VARIABLE}: the folder with {', '.join(names)}"
    absent = [name for name in names if not (folder / name).is_file()]
    return f"{', '.join(absent)} not in {folder}; give --data" if absent else None
