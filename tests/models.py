"""Tiny random language models on disk, for tests that need a real reader and no real language.

Each function writes a folder as `save_pretrained` would and returns it, for
`hf.build(model=str(folder))` or `--reader hf:FOLDER`. The weights are drawn wide, so that the
distributions are far from uniform and a wrong mask or position shows at once.
"""

from pathlib import Path
from typing import Any

import torch
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
)
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import AutoModelForCausalLM, AutoModelForSeq2SeqLM

BOS, END, TURN = "<|bos|>", "<|end|>", "<|turn|>"
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|turn|>{{ message.role }}\n"
    "{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
TEXT = """You answer questions. Documents: Doc 1 (Alba): Alba is a film directed by Bruno Costa.
Bruno Costa was born in Lisbon in 1951. Question: Where was the director of Alba born? Give only
the answer. Think step by step, one sentence per step. So the answer is: Lisbon. yes no"""


def tokenizer(*, chat: bool = True) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of 320 tokens, learned from a few lines of English."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=[BOS, END, TURN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(TEXT.splitlines(), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token=BOS, eos_token=END)
    if chat:
        fast.chat_template = CHAT_TEMPLATE
    return fast


def save(folder: Path, config: PreTrainedConfig, *, chat: bool, seed: int) -> Path:
    """Write a model of this configuration with random weights, and its tokenizer."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer(chat=chat).save_pretrained(folder)
    return folder


def tiny_llama(folder: Path, *, chat: bool = True, seed: int = 0, **options: Any) -> Path:
    """Rotary positions, grouped keys; `options` go to `LlamaConfig`."""
    config = LlamaConfig(**{**SHAPE, "num_key_value_heads": 2, **options})
    return save(folder, config, chat=chat, seed=seed)


def tiny_qwen2(folder: Path, *, chat: bool = True, seed: int = 0, **options: Any) -> Path:
    """Rotary positions, biases, tied embeddings."""
    tied = {"num_key_value_heads": 2, "tie_word_embeddings": True}
    return save(folder, Qwen2Config(**{**SHAPE, **tied, **options}), chat=chat, seed=seed)


def tiny_mistral(folder: Path, *, chat: bool = True, seed: int = 0, **options: Any) -> Path:
    """Sliding-window attention over the last eight tokens."""
    sliding = {"num_key_value_heads": 2, "sliding_window": 8}
    return save(folder, MistralConfig(**{**SHAPE, **sliding, **options}), chat=chat, seed=seed)


def tiny_gpt2(folder: Path, *, chat: bool = False, seed: int = 0, **options: Any) -> Path:
    """Absolute positions: padding that shifts them changes everything. No chat template."""
    shape = {
        "vocab_size": 320,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 512,
        "initializer_range": 0.4,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    return save(folder, GPT2Config(**{**shape, **options}), chat=chat, seed=seed)


def tiny_t5(folder: Path, *, kind: str = "t5", seed: int = 0, **options: Any) -> Path:
    """An encoder-decoder of T5's family; its tokenizer ends every text with an end token."""
    shape = {
        "vocab_size": 320,
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 64,
        "num_layers": 2,
        "num_heads": 4,
        "relative_attention_num_buckets": 8,
        "initializer_factor": 1.5,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "decoder_start_token_id": 0,
    }
    config = CONFIG_MAPPING[kind](**{**shape, **options})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        AutoModelForSeq2SeqLM.from_config(config).save_pretrained(folder)
    fast = tokenizer(chat=False)
    fast.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, 1)]
    )
    fast.save_pretrained(folder)
    return folder


SHAPE: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
    "initializer_range": 0.4,
    "bos_token_id": 0,
    "eos_token_id": 1,
}


TURNS = (
    "{{ bos_token }}{% for message in messages %}<|turn|>{{ message.role }}\n"
    "{{ message.content }}<|end|>{% endfor %}"
)
THINKERS: dict[str, tuple[str, tuple[str, ...], bool]] = {
    "qwen3": (
        TURNS + "{% if add_generation_prompt %}<|turn|>assistant\n"
        "{% if enable_thinking is defined and enable_thinking is false %}"
        "<think>\n\n</think>\n\n{% endif %}{% endif %}",
        ("<think>", "</think>"),
        False,
    ),
    "r1": (
        TURNS + "{% if add_generation_prompt %}<|turn|>assistant\n<think>\n{% endif %}",
        ("<think>", "</think>"),
        False,
    ),
    "magistral": (
        TURNS + "{# think in [THINK] and [/THINK] #}"
        "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}",
        ("[THINK]", "[/THINK]"),
        True,
    ),
    "harmony": (
        "{% for message in messages %}<|start|>{{ message.role }}<|message|>"
        "{{ message.content }}<|end_turn|>{% endfor %}"
        "{# <|channel|>analysis<|message|> #}{% if add_generation_prompt %}"
        "<|start|>assistant{% endif %}",
        ("<|start|>", "<|channel|>", "<|message|>", "<|end_turn|>"),
        True,
    ),
}
"""Chat templates of reasoning models, cut down to what they say of thoughts, with the marks among
their tokens and whether these are special."""


def thinking_tokenizer(style: str) -> PreTrainedTokenizerFast:
    """The tokenizer above with a reasoning model's marks and template."""
    template, marks, special = THINKERS[style]
    fast = tokenizer()
    fast.add_tokens([AddedToken(m, special=special, normalized=False) for m in marks])
    fast.chat_template = template
    return fast


def tiny_thinker(folder: Path, style: str, *, seed: int = 0, **options: Any) -> Path:
    """A tiny Llama whose prompts are those of a reasoning model."""
    shape = {"num_key_value_heads": 2, "vocab_size": 328}
    save(folder, LlamaConfig(**{**SHAPE, **shape, **options}), chat=True, seed=seed)
    thinking_tokenizer(style).save_pretrained(folder)
    return folder
