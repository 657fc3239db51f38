"""An MNLI classifier of DeBERTa-base's size with random weights: its verdicts mean nothing, its
cost is real."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, DebertaV2Config, DebertaV2ForSequenceClassification
from transformers.utils import logging

from hopscope.runtime.readers import tiny

LAYERS, WIDTH = 12, 768


def save(folder: Path, *, layers: int = LAYERS, width: int = WIDTH) -> Path:
    """Write the model, with the embedded reader's tokenizer, which knows the words of Hopland."""
    settings: Any = logging
    settings.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(tiny.FOLDER, local_files_only=True)
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.padding_side = "right"  # a classifier reads its verdict at the first token
    shaped: Any = DebertaV2Config  # whose types know but a few of its settings
    config = shaped(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        max_position_embeddings=512,
        relative_attention=True,
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        type_vocab_size=0,
        # Wide enough for different verdicts from pair to pair.
        initializer_range=0.05,
        pad_token_id=tokenizer.pad_token_id,
        num_labels=3,
    )
    config.id2label = {0: "contradiction", 1: "neutral", 2: "entailment"}
    config.label2id = {label: number for number, label in config.id2label.items()}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        DebertaV2ForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
