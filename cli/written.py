"""Files that commands write: one that is there is replaced only when that is asked for."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", envvar="HOPSCOPE_OVERWRITE", help="Replace files that are there."),
]


def check_free(paths: Iterable[Path], *, overwrite: bool) -> None:
    """
    Raises:
        UsageError: something stands where files are to be written.
    """
    from hopscope.runtime.errors import UsageError

    there = [str(path) for path in paths if path.exists()]
    if there and not overwrite:
        raise UsageError(
            f"{', '.join(there)} is there already: give --overwrite, or another name to write to"
        )
