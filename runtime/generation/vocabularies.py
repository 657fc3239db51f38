"""A model's tokens without its weights: the rendering of prompts, and the end tokens."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from hopscope.runtime.errors import ReaderError
from hopscope.runtime.generation.texts.rendering import Renderer
from hopscope.runtime.generation.texts.text_stream import pieces
from hopscope.runtime.generation.transformers_reader import end_ids
from hopscope.runtime.models.loading import quiet, refusal
from hopscope.runtime.thinking.marks import Thinking
from hopscope.runtime.types import ScoreRequest


class Vocabulary(NamedTuple):
    """The tokens of one model."""

    tokenizer: Any
    renderer: Renderer
    end_ids: frozenset[int]
    size: int
    """Number of tokens with a probability."""

    def pieces(self, prompt: list[int], ids: list[int]) -> list[str]:
        """The text of each token of a continuation."""
        return pieces(self.tokenizer, prompt, ids)

    def given(self, request: ScoreRequest) -> tuple[list[int], list[int]]:
        """The tokens of a prompt and of the continuation to score.

        Raises:
            ReaderError: the chat template rejects the messages, or a token does not exist.
        """
        prompt = self.renderer.prompt_ids(request.prompt, request.thought or "")
        given = list(request.token_ids)
        given = given or self.renderer.continuation_ids(request.prompt, request.continuation)
        if given and not 0 <= min(given) <= max(given) < self.size:
            raise ReaderError(f"token {max(given)} is not among the model's {self.size}")
        return prompt, given


def load(source: str | Path, name: str, thinking: Thinking = "auto") -> Vocabulary:
    """The tokens of a model folder or of a model on the hub; `name` stands in errors.

    Raises:
        UsageError: transformers cannot read its tokenizer or configuration.
    """
    safe: Any = {"trust_remote_code": False}
    with quiet(), refusal(f"{name}: its tokenizer cannot be used"):
        tokenizer = AutoTokenizer.from_pretrained(source, **safe)
        config = AutoConfig.from_pretrained(source, **safe)
        try:
            generation = GenerationConfig.from_pretrained(source)
        except OSError:  # a model need not have one
            generation = None
    ends = end_ids(SimpleNamespace(generation_config=generation, config=config), tokenizer)
    size: int = config.get_text_config().vocab_size
    return Vocabulary(tokenizer, Renderer(tokenizer, name, ends, thinking), ends, size)
