"""Tiny random encoders on disk, one of each architecture, and BERT by hand to check them with."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertModel,
    DPRConfig,
    DPRContextEncoder,
    DPRQuestionEncoder,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5Model,
)

TEXT = """alba film costa made it born in lisbon : query passage represent this sentence for
searching relevant passages title text who red fox hen barn the a of by one two three"""
WORDS = TEXT.split()
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
T5_SPECIAL = ["<pad>", "</s>", "<unk>"]
HEADS = 4
SHAPE: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "max_position_embeddings": 40,
    "initializer_range": 0.4,
}
Array = NDArray[np.float64]


def bert(folder: Path, *, seed: int = 0, words: list[str] = WORDS, **options: Any) -> Path:
    """As Contriever, E5, BGE and MiniLM are."""
    config = BertConfig(**{**SHAPE, "vocab_size": len(BERT_SPECIAL + words), **options})
    return _save(BertModel, config, folder, seed, _bert_tokenizer(words))


def dpr(folder: Path, *, query: bool, seed: int = 0, **options: Any) -> Path:
    config = DPRConfig(**{**SHAPE, "vocab_size": len(BERT_SPECIAL + WORDS), **options})
    kind = DPRQuestionEncoder if query else DPRContextEncoder
    return _save(kind, config, folder, seed, _bert_tokenizer(WORDS))


def t5(folder: Path, *, seed: int = 0) -> Path:
    """As AAR-ANCE is."""
    config = T5Config(
        vocab_size=len(T5_SPECIAL + WORDS),
        **{"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": HEADS},
        **{"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0},
    )
    fast = _tokenizer(T5_SPECIAL, WORDS, unknown="<unk>", single="$A </s>", pair="$A </s> $B </s>")
    named = PreTrainedTokenizerFast(tokenizer_object=fast, pad_token="<pad>", eos_token="</s>")
    return _save(T5Model, config, folder, seed, named)


def ance(folder: Path, *, seed: int = 0, units: int = 24) -> Path:
    """RoBERTa with a head, named as in castorini/ance-*."""
    config = RobertaConfig(
        **{**SHAPE, "vocab_size": len(ROBERTA_SPECIAL + WORDS), "type_vocab_size": 1},
        **{"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "layer_norm_eps": 1e-5},
    )
    config.architectures = ["AnceEncoder"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inner = RobertaModel(config, add_pooling_layer=False).state_dict()
        weights = {f"roberta.{name}": value for name, value in inner.items()}
        weights["embeddingHead.weight"] = torch.randn(units, 32)
        weights |= {f"{name}.bias": torch.randn(units) for name in ("embeddingHead", "norm")}
        weights["norm.weight"] = torch.randn(units)
    folder.mkdir(parents=True)
    config.save_pretrained(folder)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    single, pair = "<s> $A </s>", "<s> $A </s> </s> $B </s>"
    fast = _tokenizer(ROBERTA_SPECIAL, WORDS, unknown="<unk>", single=single, pair=pair)
    special = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=fast, **special).save_pretrained(folder)
    return folder


def numbers(tokens: str, special: list[str]) -> list[int]:
    """Token numbers of space-separated tokens."""
    return [(special + WORDS).index(token) for token in tokens.split()]


def states(folder: Path, ids: list[int], *, prefix: str = "", eps: float = 1e-12) -> Array:
    """The last hidden states of BERT (or, with positions from 2, RoBERTa), in double precision.

    Devlin et al. 2019 by hand: embeddings, attention, feed-forward with exact GELU, layer
    normalisation after each.
    """
    read = load_file(folder / "model.safetensors")
    weights = {name.removeprefix(prefix): value.astype(float) for name, value in read.items()}
    first = 2 if prefix.startswith("roberta") else 0

    def norm(x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def linear(x: Array, name: str) -> Array:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def split(x: Array) -> Array:
        return x.reshape(len(ids), HEADS, -1).transpose(1, 0, 2)

    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][first : first + len(ids)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in ("encoder.layer.0", "encoder.layer.1"):
        own = f"{layer}.attention.self"
        query, key, value = (split(linear(x, f"{own}.{p}")) for p in ("query", "key", "value"))
        raw = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        shares = np.exp(raw - raw.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed = (shares @ value).transpose(1, 0, 2).reshape(len(ids), -1)
        mixed = linear(mixed, f"{layer}.attention.output.dense")
        x = norm(x + mixed, f"{layer}.attention.output.LayerNorm")
        wide = linear(x, f"{layer}.intermediate.dense")
        wide = wide * (1 + np.vectorize(math.erf)(wide / math.sqrt(2))) / 2
        x = norm(x + linear(wide, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    return x


def _save(kind: Any, config: Any, folder: Path, seed: int, tokenizer: Any) -> Path:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        kind(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _bert_tokenizer(words: list[str]) -> PreTrainedTokenizerFast:
    single, pair = "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"
    fast = _tokenizer(BERT_SPECIAL, words, unknown="[UNK]", single=single, pair=pair)
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]"}
    return PreTrainedTokenizerFast(tokenizer_object=fast, sep_token="[SEP]", **special)


def _tokenizer(
    special: list[str], words: list[str], *, unknown: str, single: str, pair: str
) -> Tokenizer:
    """Whole words, split at spaces and signs; unknown ones share a number."""
    vocabulary = {word: number for number, word in enumerate(special + words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    used = [(token, vocabulary[token]) for token in special]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=used
    )
    return tokenizer
