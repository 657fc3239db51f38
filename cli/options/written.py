"""Output files: existing ones are replaced only on request, and unwritable ones are reported before
anything is computed."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from hopscope.cli.options.help import PLACES

Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        envvar="HOPSCOPE_OVERWRITE",
        help="Replace existing files.",
        rich_help_panel=PLACES,
    ),
]


def check_folder(path: Path) -> None:
    """Check that a file can have this path, before it is computed.

    Raises:
        UsageError: the file cannot be written, since its folder is missing or it is one itself.
    """
    from hopscope.runtime.errors import UsageError

    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file to write to")
    if not path.parent.is_dir():
        raise UsageError(f"{path} cannot be written: {path.parent} is no folder")


def check_free(paths: Iterable[Path], *, overwrite: bool) -> None:
    """
    Raises:
        UsageError: something stands where files are to be written, or none can.
    """
    from hopscope.runtime.errors import UsageError

    there = []
    for path in paths:
        try:
            path.lstat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from None
        if path.is_dir():
            raise UsageError(f"{path} is a folder: name a file to write to")
        there.append(str(path))
    if there and not overwrite:
        verb = "is" if len(there) == 1 else "are"
        raise UsageError(
            f"{', '.join(there)} {verb} there already: give --overwrite, or another name to "
            "write to"
        )
