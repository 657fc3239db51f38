"""Bringing a checkpoint into memory: weights from safetensors only, and no code from outside.

Code can come with a checkpoint (`auto_map`), or from the hub where the configuration names a kernel
for attention or experts and the package `kernels` is installed. Neither is loaded.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer
from transformers.utils import logging

from hopscope.runtime.errors import HopscopeError, UsageError
from hopscope.runtime.readers._architecture import readable
from hopscope.runtime.readers._checkpoint import Checkpoint
from hopscope.runtime.readers._comparison import compare
from hopscope.runtime.readers._thinking import Thinking
from hopscope.runtime.readers._transformers import TransformersReader, first_line

_LOCAL: Any = {"local_files_only": True, "trust_remote_code": False}
OWN_ATTENTION = ("eager", "sdpa")
"""Ways of computing attention that torch and transformers bring; all others are packages or kernels
from the hub."""


def load(
    checkpoint: Checkpoint,
    *,
    device: str,
    dtype: str,
    compiled: bool,
    max_batch_tokens: int,
    prefix_bytes: int,
    thinking: Thinking = "auto",
) -> TransformersReader:
    """Bring a checkpoint into memory.

    Raises:
        UsageError: transformers cannot load it, or the device is not there.
    """
    where = choose_device(device)
    if dtype == "auto" and where == "cpu":
        dtype = "float32"
    config = configuration(checkpoint.folder, checkpoint.name)
    architecture = readable(config, checkpoint.name)
    tokenizer = tokenizer_of(checkpoint.vocabulary, checkpoint.name)
    model, report = weights(
        architecture.auto,
        checkpoint.folder,
        checkpoint.name,
        device=where,
        config=config,
        dtype=dtype,
        ignore_mismatched_sizes=True,
    )
    # transformers gives weights that are missing or of another shape random values.
    reshaped = {name for name, *_ in report["mismatched_keys"]}
    if invented := sorted(reshaped | set(report["missing_keys"])):
        raise UsageError(
            f"{checkpoint.name}: weights and configuration do not belong together: "
            f"{len(invented)} weights are missing or of another shape, first {invented[0]}"
        )
    if checkpoint.adapter is not None:
        model = _merged(model, checkpoint.adapter, checkpoint.name)
    if not architecture.known:
        compare(model, checkpoint.name)
    precision = str(model.dtype).removeprefix("torch.")
    name = checkpoint.name if precision == "float32" else f"{checkpoint.name}:{precision}"
    if compiled:
        model.compile(dynamic=True)
        name += ":compiled"
    with refusal(f"{checkpoint.name}: its configuration cannot be used"):
        return TransformersReader(
            model,
            tokenizer,
            name=name,
            max_batch_tokens=max_batch_tokens,
            prefix_bytes=prefix_bytes,
            thinking=thinking,
        )


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
    """Likewise its tokenizer.

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


def _merged(model: Any, adapter: Path, name: str) -> Any:
    """The model with a LoRA adapter added to its weights.

    Raises:
        UsageError: peft cannot load it.
    """
    from peft import LoraConfig, PeftModel

    refused = refusal(f"{name}: the adapter cannot be merged into its base model")
    with quiet(), refused, warnings.catch_warnings():
        config = LoraConfig.from_pretrained(str(adapter))
        # These name modules that peft would import.
        config.auto_mapping = config.megatron_config = None
        warnings.simplefilter("ignore", FutureWarning)  # of peft to itself
        # What it lacks would stay without effect.
        warnings.filterwarnings("error", message="Found missing adapter keys")
        wrapped = PeftModel.from_pretrained(model, str(adapter), config=config)
        return wrapped.merge_and_unload(safe_merge=True).eval()


def choose_device(device: str) -> str:
    """The device meant by an option, checked to be there."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device == "auto":
        return next((name for name, present in there.items() if present), "cpu")
    if not there.get(device, True):
        raise UsageError(f"device {device} is not available here; use auto or cpu")
    return device


@contextmanager
def refusal(what: str) -> Iterator[None]:
    """Turn what transformers raises while loading into our error."""
    try:
        yield
    except HopscopeError:
        raise
    except Exception as error:  # what a damaged file makes of transformers' code knows no bounds
        raise UsageError(f"{what}: {first_line(error)}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' bars and tables off the terminal; the settings are global, so put them
    back."""
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
