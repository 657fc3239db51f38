"""The embedded reader: a small language model that ships with the package and needs no network.

It was trained from scratch on Hopland, a fictional world, and reads nothing else; its model card
is in the folder of the weights. `tiny:search` is a smaller one that searches by itself, for the
workflow `search_agent`.
"""

from pathlib import Path
from typing import Literal

from pydantic import ByteSize

from hopscope.runtime.components import Bytes, Count
from hopscope.runtime.errors import UsageError
from hopscope.runtime.models.checkpoint import locate
from hopscope.runtime.models.devices import Device
from hopscope.runtime.models.installed import require
from hopscope.runtime.models.processor import settle_processor
from hopscope.runtime.ports import Reader

PREFIX_CACHE = ByteSize(256_000_000)
"""Enough for the prompts of IRCoT that `eval` answers at a time; 128 MB make it slower."""
FOLDER = Path(__file__).parent / "hopland"
FOLDERS = {"read": FOLDER, "search": Path(__file__).parent / "hopland_search"}


def build(
    *,
    model: Literal["read", "search"] = "read",
    device: Device = "cpu",
    max_batch_tokens: Count = 16_384,
    prefix_cache: Bytes = PREFIX_CACHE,
) -> Reader:
    """The embedded reader; options as in the reader `hf`.

    Args:
        model: `read` answers the prompts of all workflows but agents; `search` was taught to think,
            search and answer by tags in the form of Search-R1.

    Raises:
        MissingExtraError: the libraries that run it are not installed.
    """
    require("the embedded reader", instead="name a model on a server: openai:URL#MODEL")
    folder = FOLDERS[model]
    if not (folder / "config.json").is_file():
        raise UsageError(
            f"this installation lacks the embedded reader (runtime/readers/{folder.name} is "
            "missing); install hopscope again, or name another model: hf:FOLDER_OR_HUB_ID"
        )
    checkpoint = locate(str(folder))
    settle_processor()
    from hopscope.runtime.generation.embedded import load

    return load(
        checkpoint,
        device=device,
        max_batch_tokens=max_batch_tokens,
        prefix_bytes=prefix_cache,
    )
