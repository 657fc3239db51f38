"""Tiny random checkpoints of many architectures, made from transformers' own configurations."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from tests.models import SHAPE, tokenizer

Options = dict[str, Any]
EXPERTS: Options = {
    "moe_intermediate_size": 16,
    "num_local_experts": 4,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "n_routed_experts": 4,
    "shared_expert_intermediate_size": 16,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}
LATENT: Options = {
    "num_key_value_heads": 4,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
}
"""Keys and values of all heads in one small vector."""
HEAD: Options = {"head_dim": 8}
SLIDING: Options = {"sliding_window": 8}
MIXED: Options = {**SLIDING, "layer_types": ["sliding_attention", "full_attention"]}
CALM: Options = {"initializer_range": 0.2}
"""Scans in chunks round more; wide weights would amplify it beyond the tolerance."""
MAMBA: Options = {
    **CALM,
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_d_state": 8,
    "mamba_n_groups": 1,
    "mamba_chunk_size": 16,
}
LINEAR: Options = {
    **CALM,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "layer_types": ["linear_attention", "full_attention"],
}

PLAIN = """apertus arcee biogpt bitnet bloom cohere diffllama doge ernie4_5 gpt2 gpt_bigcode
gpt_neox granite llama ministral3 mpt nanochat olmo olmo2 persimmon phi phi3 qwen2 seed_oss smollm3
stablelm""".split()
SHAPED: dict[str, Options] = {
    "afmoe": EXPERTS,
    "bamba": {**MAMBA, "attn_layer_indices": [1]},
    "codegen": {"rotary_dim": 4},
    "cohere2": MIXED,
    "deepseek_v2": {**EXPERTS, **LATENT},
    "deepseek_v3": {**EXPERTS, **LATENT},
    "ernie4_5_moe": EXPERTS,
    "exaone4": MIXED,
    "falcon": {"multi_query": True},
    "falcon_h1": {**MAMBA, "mamba_d_ssm": 64},
    "gemma": HEAD,
    "gemma2": {**HEAD, **MIXED},
    "gemma3_text": {**HEAD, **MIXED},
    "gemma4_text": {
        **HEAD,
        "sliding_window": 8,
        "num_hidden_layers": 4,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "num_kv_shared_layers": 2,
        "global_head_dim": 16,
        "hidden_size_per_layer_input": 8,
        "vocab_size_per_layer_input": 320,
    },
    "glm": HEAD,
    "glm4": HEAD,
    "glm4_moe": {**EXPERTS, **HEAD},
    "gpt_neo": {"num_layers": 2, "attention_types": [[["global", "local"], 1]], "window_size": 8},
    "gpt_oss": {**EXPERTS, **MIXED},
    "gptj": {"rotary_dim": 4},
    "granitemoe": EXPERTS,
    "granitemoehybrid": {
        **EXPERTS,
        **MAMBA,
        "layer_types": ["mamba", "attention"],
        "shared_intermediate_size": 16,
    },
    "helium": HEAD,
    "jamba": {
        **EXPERTS,
        **CALM,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "use_mamba_kernels": False,
    },
    "jetmoe": {**EXPERTS, **CALM},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "lfm2_moe": {**EXPERTS, "layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "llama4_text": {
        **EXPERTS,
        **HEAD,
        "attention_chunk_size": 16,
        "intermediate_size_mlp": 64,
        "no_rope_layers": [1, 0],
        "layer_types": ["chunked_attention", "full_attention"],
    },
    "minicpm3": LATENT,
    "minimax_m2": EXPERTS,
    "mistral": SLIDING,
    "mixtral": EXPERTS,
    "nemotron": HEAD,
    "olmo3": MIXED,
    "olmo_hybrid": LINEAR,
    "olmoe": EXPERTS,
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "phimoe": EXPERTS,
    "qwen2_moe": EXPERTS,
    "qwen3": HEAD,
    "qwen3_5_moe_text": {**EXPERTS, **HEAD, **LINEAR},
    "qwen3_5_text": {**HEAD, **LINEAR},
    "qwen3_moe": {**EXPERTS, **HEAD},
    "qwen3_next": {**EXPERTS, **LINEAR},
    "starcoder2": SLIDING,
    "vaultgemma": HEAD,
    "xglm": {"d_model": 32, "ffn_dim": 64, "num_layers": 2, "attention_heads": 4},
    "youtu": LATENT,
    "zamba": {
        **CALM,
        "num_hidden_layers": 4,
        "layers_block_type": ["mamba", "hybrid"] * 2,
        "mamba_d_state": 8,
        "n_mamba_heads": 2,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
    },
}
VISION: Options = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 8,
    "patch_size": 4,
    "head_dim": 8,
}
QWEN_VISION: Options = {
    "vision_config": {
        "depth": 1,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_heads": 2,
        "out_hidden_size": 32,
        "num_position_embeddings": 16,
    }
}
WITH_IMAGES: dict[str, Options] = {
    "gemma3": {"vision_config": {"model_type": "siglip_vision_model", **VISION}},
    "gemma4": {"vision_config": {"model_type": "gemma4_vision", **VISION}, "audio_config": None},
    "llava": {"vision_config": {"model_type": "clip_vision_model", **VISION, "projection_dim": 16}},
    "mistral3": {"vision_config": {"model_type": "pixtral", **VISION}},
    "qwen2_5_vl": {
        "vision_config": {
            "depth": 1,
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_heads": 2,
            "out_hidden_size": 32,
            "fullatt_block_indexes": [0],
        }
    },
    "qwen3_5": QWEN_VISION,
    "qwen3_5_moe": QWEN_VISION,
}
"""Checkpoints of images and text, by the part that sees."""
TEXT_OF: dict[str, str] = {
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "llava": "llama",
    "mistral3": "mistral",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
}
"""The part that writes."""
ROTARY = {
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}
}

RIGHT: Sequence[str] = (*PLAIN, *SHAPED, *WITH_IMAGES)


def missing(name: str) -> bool:
    """Whether this transformers has no such architecture."""
    return name not in CONFIG_MAPPING


def options(name: str) -> Options:
    """A configuration's arguments."""
    grouped = {} if name in {"falcon", "gpt_neo"} else {"num_key_value_heads": 2}
    return {**SHAPE, "pad_token_id": 2, **grouped, **SHAPED.get(name, {})}


def configuration(name: str, **more: Any) -> Any:
    """Of a tiny model of this kind."""
    if name not in WITH_IMAGES:
        return CONFIG_MAPPING[name](**{**options(name), **more})
    text = TEXT_OF.get(name)
    inner = {"model_type": text, **options(text)} if text else {**options("qwen2"), **ROTARY}
    return CONFIG_MAPPING[name](
        **WITH_IMAGES[name], text_config=inner, image_token_id=300, image_token_index=300
    )


def save(folder: Path, config: Any, *, seed: int = 0) -> Path:
    """Random weights of this configuration, and a tokenizer."""
    causal: Any = AutoModelForCausalLM
    auto = causal if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING else AutoModelForImageTextToText
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        auto.from_config(config).save_pretrained(folder)
    _tokenizer().save_pretrained(folder)
    return folder


@cache
def _tokenizer() -> Any:
    return tokenizer()
