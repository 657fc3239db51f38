"""A causal language model of a given size with random weights: its replies mean nothing, its cost
is real.

The shape is that of small models of today: heads share keys and values by four, and the embedding
gives the logits, too. It has no end token, so that replies have the lengths that are asked for.
"""

from pathlib import Path

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

from hopscope.runtime.readers import tiny

LAYERS, WIDTH = 12, 768
"""A hundred million weights, with the vocabulary."""
VOCABULARY = 32_000
HEAD, SHARING = 64, 4
"""Coordinates of a head, and the heads that share keys and values."""
CONTEXT = 2048
SHARPNESS = 8.0
"""Weight of the last norm: by it the next token has an entropy of about 3 nats. Without it all
tokens are nearly as likely, and rounding would decide more often which is the likeliest."""


def save(folder: Path, *, layers: int = LAYERS, width: int = WIDTH) -> Path:
    """Write the model, with the embedded reader's tokenizer, which knows the words of Hopland; a
    drawn token that it does not know is spelled as nothing."""
    heads = width // HEAD
    if width % (HEAD * SHARING):
        raise SystemExit(f"the width must be a multiple of {HEAD * SHARING}")
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=8 * width // 3,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads // SHARING,
        head_dim=HEAD,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
    )
    tokenizer = AutoTokenizer.from_pretrained(tiny.FOLDER, local_files_only=True)
    tokenizer.eos_token = None
    tokenizer.save_pretrained(folder)
    logging.disable_progress_bar()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LlamaForCausalLM(config)
        torch.nn.init.constant_(model.model.norm.weight, SHARPNESS)
        model.save_pretrained(folder)
    return folder
