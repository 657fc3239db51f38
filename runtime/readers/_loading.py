"""Bringing a checkpoint into memory: weights from safetensors only, and no code from outside."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from hopscope.runtime.errors import UsageError
from hopscope.runtime.readers._checkpoint import Checkpoint
from hopscope.runtime.readers._transformers import TransformersReader, first_line

LOADING_FAILURES = (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError)


def load(
    checkpoint: Checkpoint, *, device: str, dtype: str, max_batch_tokens: int
) -> TransformersReader:
    """Bring a checkpoint into memory.

    Raises:
        UsageError: transformers cannot load it, or the device is not there.
    """
    where = choose_device(device)
    auto_model: Any = AutoModelForCausalLM
    if dtype == "auto" and where == "cpu":
        dtype = "float32"
    try:
        with no_progress_bar():
            tokenizer = AutoTokenizer.from_pretrained(
                checkpoint.folder, local_files_only=True, trust_remote_code=False
            )
            model, report = auto_model.from_pretrained(
                checkpoint.folder,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=dtype,
                output_loading_info=True,
            )
        model = model.to(where).eval()
    except LOADING_FAILURES as error:
        raise UsageError(f"{checkpoint.name} cannot be loaded: {first_line(error)}") from error
    if missing := sorted(report["missing_keys"]):
        raise UsageError(
            f"{checkpoint.name} lacks {len(missing)} of its weights, first {missing[0]}"
        )
    if "past_key_values" not in inspect.signature(model.forward).parameters:
        raise UsageError(f"{checkpoint.name} keeps no keys and values, which sampling relies on")
    precision = str(model.dtype).removeprefix("torch.")
    name = checkpoint.name if precision == "float32" else f"{checkpoint.name}:{precision}"
    return TransformersReader(model, tokenizer, name=name, max_batch_tokens=max_batch_tokens)


def choose_device(device: str) -> str:
    """The device meant by an option, checked to be there."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device == "auto":
        return next((name for name, present in there.items() if present), "cpu")
    if not there.get(device, True):
        raise UsageError(f"device {device} is not available here; use auto or cpu")
    return device


@contextmanager
def no_progress_bar() -> Iterator[None]:
    """Keep transformers from drawing on the terminal; the setting is global, so put it back."""
    settings: Any = logging
    shown = settings.is_progress_bar_enabled()
    settings.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            settings.enable_progress_bar()
