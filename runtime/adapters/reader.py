"""A transformers model in memory as a reader.

    model = AutoModelForCausalLM.from_pretrained("my/model")
    tokenizer = AutoTokenizer.from_pretrained("my/model")
    reader.of_model(model, tokenizer)

Invariants: its results equal those of the reader `hf` with the same weights, to the last digit; the
model and the tokenizer stay unchanged.
"""

import copy
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hopscope.runtime.components import Count
from hopscope.runtime.errors import ReaderError, UsageError
from hopscope.runtime.generation.loading import reading
from hopscope.runtime.generation.transformers_reader import end_ids
from hopscope.runtime.models.architecture import readable
from hopscope.runtime.models.loading import OWN_ATTENTION, refusal
from hopscope.runtime.places import expanded
from hopscope.runtime.ports import Reader
from hopscope.runtime.readers.hf import PREFIX_CACHE
from hopscope.runtime.thinking.marks import Thinking

SAMPLED = 1 << 14
"""The most numbers of each weight in the fingerprint."""
ELSEWHERE = frozenset({"_name_or_path", "_commit_hash", "transformers_version"})
"""Entries of a configuration that name its origin and do not affect results."""


def of_model(
    model: Any,
    tokenizer: Any,
    name: str | None = None,
    *,
    max_batch_tokens: Count = 16_384,
    prefix_cache: int = PREFIX_CACHE,
    thinking: Thinking = "auto",
) -> Reader:
    """A reader over a loaded causal language model of transformers.

    The model computes on its device and in its precision. Dropout is off during computation; a
    model in training mode returns to it after each call. The tokenizer is copied. When the weights
    change (training, `load_state_dict`, `to`), the reader refuses further requests, because its
    name and its kept keys and values belong to the earlier weights: make a new reader.

    The reader's name is `NAME@loaded-FINGERPRINT`, with `:bfloat16` and the like if it is not in
    float32. The fingerprint covers weights (large ones by samples), configuration and tokenizer; it
    differs from the fingerprint of the model's folder in the names of `hf`. If weights of an
    unusual kind cannot be read, the name is `NAME@loaded`.

    Args:
        model: as from `AutoModelForCausalLM.from_pretrained`.
        tokenizer: the model's own, as from `AutoTokenizer.from_pretrained`.
        name: by default the hub id or the folder's name of the model, else its class.
        max_batch_tokens: rows times positions computed together; bounds the memory used.
        prefix_cache: bytes of keys and values that are kept of prompts; 0 keeps none.
        thinking: `auto` follows the chat template's default; `on`, `off`, or a number of tokens.

    Raises:
        UsageError: the arguments are no causal language model of transformers with its tokenizer,
            or the model cannot be sampled correctly; the message has the reason.
        ReaderError: later, by the reader's methods, if the model fails or has changed.
    """
    _check(model, tokenizer)
    given = name or _given_name(model)
    architecture = readable(model.config, given)
    with refusal(f"{given}: its tokenizer cannot be copied"):
        own = _copy(tokenizer)
    made_with = _weights(model)
    name = f"{given}@loaded{_fingerprint(model, own)}"

    @contextmanager
    def guard() -> Iterator[None]:
        if _weights(model) != made_with:
            raise ReaderError(
                f"{name}: the model's weights have changed since this reader was made of it; make "
                "a new one with of_model(model, tokenizer)"
            )
        with _without_dropout(model):
            yield

    with guard():
        return reading(
            model,
            own,
            name=name,
            known=architecture.known and model.config._attn_implementation in OWN_ATTENTION,
            compiled=False,
            max_batch_tokens=max_batch_tokens,
            prefix_bytes=prefix_cache,
            thinking=thinking,
            guard=guard,
        )


def _check(model: Any, tokenizer: Any) -> None:
    """
    Raises:
        UsageError: the arguments are no causal language model and tokenizer.
    """
    kind = type(model).__name__
    if hasattr(model, "merge_and_unload"):
        raise UsageError(
            f"the model is a {kind}, an adapter on a model: give model.merge_and_unload(), or save "
            "the adapter and name its folder, hf:FOLDER"
        )
    if hasattr(model, "_orig_mod"):
        raise UsageError(
            "the model is wrapped by torch.compile: give the model itself, which model.compile() "
            "compiles in place"
        )
    if not isinstance(model, PreTrainedModel):
        raise UsageError(
            f"a reader is made of a model of transformers and its tokenizer; {kind} is no such "
            "model"
        )
    if not model.can_generate():
        raise UsageError(
            f"{kind} does not write: load the checkpoint with AutoModelForCausalLM.from_pretrained"
        )
    if any(weight.is_meta for weight in model.parameters()):
        raise UsageError(f"the weights of this {kind} are not in memory (device meta): load them")
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        own = (
            " (a processor has one: processor.tokenizer)" if hasattr(tokenizer, "tokenizer") else ""
        )
        raise UsageError(
            f"{type(tokenizer).__name__} is no tokenizer of transformers{own}: give "
            "AutoTokenizer.from_pretrained(...) of the model's checkpoint"
        )


def _given_name(model: Any) -> str:
    """The hub id or the folder's name of the model."""
    given = str(model.config._name_or_path or "")
    folder = expanded(given)
    if given and (folder.is_absolute() or given.startswith(".") or folder.is_dir()):
        return folder.resolve().name
    return given or type(model).__name__


def _copy(tokenizer: Any) -> Any:
    """A copy of the tokenizer: users set truncation and padding on it, which persist."""
    own = copy.deepcopy(tokenizer)
    if (backend := getattr(own, "backend_tokenizer", None)) is not None:
        backend.no_truncation()
        backend.no_padding()
    return own


@contextmanager
def _without_dropout(model: Any) -> Iterator[None]:
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _weights(model: Any) -> list[tuple[Any, ...]]:
    """A value that changes when a weight is written, moved or replaced, without a pass over its
    numbers."""
    return [
        (id(each), each.dtype, each.device, 0 if each.is_inference() else each._version)
        for each in model.parameters()
    ]


def _fingerprint(model: Any, tokenizer: Any) -> str:
    """Twelve hex digits after a dash; empty if the weights cannot be read."""
    config = {k: v for k, v in model.config.to_dict().items() if k not in ELSEWHERE}
    backend = getattr(tokenizer, "backend_tokenizer", None)
    vocabulary = tokenizer.get_vocab() if backend is None else backend.to_str()
    told = [config, sorted(end_ids(model, tokenizer)), vocabulary, tokenizer.chat_template]
    sha = hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode())
    try:
        for name, weight in model.state_dict().items():
            sha.update(f"{name}\0{weight.dtype}\0{tuple(weight.shape)}\0".encode())
            numbers = weight.detach().reshape(-1)
            sampled = numbers[:: -(-len(numbers) // SAMPLED) or 1].contiguous().cpu()
            sha.update(sampled.view(torch.uint8).numpy().tobytes())
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):  # of packed weights
        return ""
    return f"-{sha.hexdigest()[:12]}"
