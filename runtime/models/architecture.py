"""Decides whether a checkpoint can be read as a language model, before its weights are loaded.

`KNOWN` are those that tests/runtime/models/test_zoo.py compares, each with a random model, with the
model's own forward pass: cached, batched, one by one and in sequence they agree to 1e-4. A model of
another kind is compared when it is loaded (`_comparison`).
"""

import inspect
from typing import Any, NamedTuple

from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
)

from hopscope.runtime.errors import UsageError

KNOWN = frozenset(
    """
    afmoe apertus arcee bamba biogpt bitnet bloom codegen cohere cohere2 deepseek_v2 deepseek_v3
    diffllama doge ernie4_5 ernie4_5_moe exaone4 falcon falcon_h1 gemma gemma2 gemma3 gemma3_text
    gemma4 gemma4_text glm glm4 glm4_moe gpt2 gpt_bigcode gpt_neo gpt_neox gpt_oss gptj granite
    granitemoe granitemoehybrid helium jamba jetmoe lfm2 lfm2_moe llama llama4_text llava minicpm3
    minimax_m2 ministral3 mistral mistral3 mixtral mpt nanochat nemotron olmo olmo2 olmo3
    olmo_hybrid olmoe opt persimmon phi phi3 phimoe qwen2 qwen2_5_vl qwen2_moe qwen3 qwen3_5
    qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next seed_oss smollm3 stablelm
    starcoder2 vaultgemma xglm youtu zamba
    """.split()
)
"""Model types, as configurations name them."""

FUSED = frozenset({"mt5", "t5", "umt5"})
"""Encoder-decoders that the reader `fid` reads."""

WRONG = {
    "minimax": "it takes a cache of its own, whose rows cannot be multiplied",
    "nemotron_h": "its cached steps leave out a bound that its whole passes apply (time_step_min)",
    "recurrent_gemma": "it keeps its state in its modules, for one batch at a time",
    "zamba2": "its cached steps leave out a bound that its whole passes apply (time_step_min)",
}
"""Kinds whose samples transformers computes wrongly or not at all, with the reason."""

SERVE = (
    "serve it by vLLM or llama.cpp and name the server: openai:URL#MODEL, or take vllm:MODEL "
    "(docs/readers.md)"
)


class Architecture(NamedTuple):
    """The way to read a checkpoint."""

    auto: Any
    """The class of transformers that loads it."""
    known: bool
    """Whether its kind needs no comparison."""


def readable(config: Any, name: str) -> Architecture:
    """The architecture of a configuration; `name` stands in errors.

    A checkpoint of images and text is read for its text.

    Raises:
        UsageError: it is no language model that writes from left to right, or this reader cannot
            cache its state.
    """
    kind = config.model_type
    auto, mapping = _family(config)
    if auto is None:
        raise UsageError(f"{name} is a {kind}, no causal language model; {_instead(config)}")
    if getattr(config, "is_encoder_decoder", False):
        raise UsageError(
            f"{name} is a {kind}, which encodes a text before it writes; {_instead(config)}"
        )
    if type(config) in MODEL_FOR_MASKED_LM_MAPPING and not getattr(config, "is_decoder", False):
        raise UsageError(f"{name} is a {kind}, which fills in masked words; {_instead(config)}")
    made = mapping[type(config)]
    made = made[0] if isinstance(made, tuple) else made
    if "past_key_values" not in inspect.signature(made.forward).parameters:
        raise UsageError(
            f"{name} is a {kind}, which has no keys and values of each token, "
            f"so that samples cannot share their prompt here; {SERVE}"
        )
    if why := WRONG.get(kind):
        raise UsageError(
            f"{name} is a {kind}, which transformers cannot sample from: {why}; {SERVE}"
        )
    return Architecture(auto, kind in KNOWN)


def _family(config: Any) -> tuple[Any, Any]:
    if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING:
        return AutoModelForCausalLM, MODEL_FOR_CAUSAL_LM_MAPPING
    if type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        return AutoModelForImageTextToText, MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    return None, None


def _instead(config: Any) -> str:
    if config.model_type in FUSED:
        return "read it by Fusion-in-Decoder, fid:FOLDER_OR_HUB_ID (docs/readers.md)"
    encoder = not getattr(config, "is_encoder_decoder", False)
    if encoder and type(config) in MODEL_FOR_MASKED_LM_MAPPING:
        return (
            "encoders serve for indexes (index build --kind dense), as rerankers and entailments; "
            "a reader is a model such as Llama or Qwen"
        )
    return f"if a server can run it, {SERVE}"
