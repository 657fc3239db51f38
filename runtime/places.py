"""Names of files and folders as people write them."""

import os
from pathlib import Path


def expanded(name: str | Path) -> Path:
    """The file or folder of a name; `~` and `~USER` are home folders.

    Where USER is nobody the name stays as it is; `Path.expanduser` raises a RuntimeError.
    """
    return Path(os.path.expanduser(name))
