"""Loads a checkpoint: weights from safetensors only, and no code from outside.

Code can come with a checkpoint (`auto_map`), or from the hub where the configuration names a kernel
for attention or experts and the package `kernels` is installed. Neither is loaded.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoTokenizer
from transformers.utils import logging

from hopscope.runtime.errors import HopscopeError, UsageError, first_line
from hopscope.runtime.models.devices import choose_device

_LOCAL: Any = {"local_files_only": True, "trust_remote_code": False}
OWN_ATTENTION = ("eager", "sdpa")
"""Implementations of attention in torch and transformers; all others are packages or kernels from
the hub."""


def configuration(folder: Path, name: str) -> Any:
    """A checkpoint's configuration, without the kernels that it names; `name` stands in the error.

    Raises:
        UsageError: transformers cannot read it.
    """
    with quiet(), refusal(f"{name}: its configuration cannot be used"):
        config = AutoConfig.from_pretrained(folder, **_LOCAL)
        named = config._attn_implementation
        # These setters reach the configurations within this one.
        config._attn_implementation = named if named in OWN_ATTENTION else None
        config._experts_implementation = None
        config.transformers_weights = None  # may name a file of another format
        return config


def tokenizer_of(folder: Path, name: str) -> Any:
    """A checkpoint's tokenizer; `name` stands in the error.

    Raises:
        UsageError: transformers cannot load it.
    """
    with quiet(), refusal(f"{name}: its tokenizer cannot be loaded"):
        return AutoTokenizer.from_pretrained(folder, **_LOCAL)


def weights(
    kind: Any,
    folder: Path,
    name: str,
    *,
    device: str,
    config: Any,
    dtype: str = "float32",
    **options: Any,
) -> tuple[Any, Any]:
    """A model of the class `kind`, ready to compute on the device, and transformers' report of the
    weights that it did not find. `config` is from `configuration`.

    Raises:
        UsageError: transformers cannot load it.
    """
    # Quantized models ask the hub for kernels, too. Read when the first model is imported.
    os.environ.setdefault("USE_HUB_KERNELS", "NO")
    with quiet(), refusal(f"{name}: its weights cannot be loaded"):
        model, report = kind.from_pretrained(
            folder,
            config=config,
            use_safetensors=True,
            dtype=dtype,
            output_loading_info=True,
            **_LOCAL,
            **options,
        )
        return model.to(device).eval(), report


def complete(kind: Any, folder: Path, name: str, *, device: str, config: Any, dtype: str) -> Any:
    """A model as from `weights`, all of them from the checkpoint: transformers fills those that are
    missing or of another shape with random values.

    Args:
        device: an option, such as `auto`.
        dtype: `auto` is the checkpoint's own on a GPU and float32 on the processor.

    Raises:
        UsageError: weights are missing, transformers cannot load it, or the device is missing.
    """
    where = choose_device(device)
    if dtype == "auto" and where == "cpu":
        dtype = "float32"
    model, report = weights(
        kind, folder, name, device=where, config=config, dtype=dtype, ignore_mismatched_sizes=True
    )
    reshaped = {weight for weight, *_ in report["mismatched_keys"]}
    if invented := sorted(reshaped | set(report["missing_keys"])):
        raise UsageError(
            f"{name}: weights and configuration do not belong together: "
            f"{len(invented)} weights are missing or of another shape, first {invented[0]}"
        )
    return model


def labelled(model: Any, name: str) -> str:
    """The name of a model with its precision, unless that is single."""
    precision = str(model.dtype).removeprefix("torch.")
    return name if precision == "float32" else f"{name}:{precision}"


@contextmanager
def refusal(what: str) -> Iterator[None]:
    """Turn errors of transformers while loading into a UsageError."""
    try:
        yield
    except HopscopeError:
        raise
    except Exception as error:  # a damaged file can raise anything in transformers
        raise UsageError(f"{what}: {first_line(error)}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' bars and tables off the terminal; the global settings are restored."""
    settings: Any = logging
    bar, verbosity = settings.is_progress_bar_enabled(), settings.get_verbosity()
    settings.disable_progress_bar()
    settings.set_verbosity_error()
    try:
        yield
    finally:
        settings.set_verbosity(verbosity)
        if bar:
            settings.enable_progress_bar()
