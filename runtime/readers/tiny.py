"""The embedded reader: a small language model that ships with the package and needs no network.

It was trained from scratch on Hopland, a fictional world, and reads nothing else; its model card
is in the folder of the weights.
"""

from pathlib import Path

from hopscope.runtime.components import Bytes, Count
from hopscope.runtime.errors import UsageError
from hopscope.runtime.models.devices import Device
from hopscope.runtime.models.installed import require
from hopscope.runtime.ports import Reader
from hopscope.runtime.readers import hf

FOLDER = Path(__file__).parent / "hopland"


def build(
    *,
    device: Device = "cpu",
    max_batch_tokens: Count = 16_384,
    prefix_cache: Bytes = hf.PREFIX_CACHE,
) -> Reader:
    """The embedded reader; options as in the reader `hf`.

    Raises:
        MissingExtraError: the libraries that run it are not installed.
    """
    require("the embedded reader", instead="name a model on a server: openai:URL#MODEL")
    if not (FOLDER / "config.json").is_file():
        raise UsageError(
            "this installation lacks the embedded reader (runtime/readers/hopland is "
            "missing); install hopscope again, or name another model: hf:FOLDER_OR_HUB_ID"
        )
    return hf.build(
        model=str(FOLDER),
        device=device,
        dtype="float32",
        max_batch_tokens=max_batch_tokens,
        prefix_cache=prefix_cache,
    )
