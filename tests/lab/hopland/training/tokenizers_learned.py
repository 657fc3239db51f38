"""Tokenizers of the laboratory, each learned once: that takes seconds."""

from functools import cache
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from hopscope.lab import hopland
from hopscope.lab.hopland.training import tokenizer

SMALL = Path(hopland.__file__).parent / "small"
"""The smaller reader of the laboratory."""


@cache
def learned() -> PreTrainedTokenizerFast:
    """From nothing."""
    return tokenizer.learn()


@cache
def longer() -> PreTrainedTokenizerFast:
    """The smaller reader's, with the words of the prompts."""
    return tokenizer.longer(SMALL)
