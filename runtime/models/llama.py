"""Llama's forward pass over torch alone, for the embedded readers.

Importing transformers' models takes longer than importing torch and answering a question. The
operations here are those of transformers' `LlamaForCausalLM` with attention by torch
(`scaled_dot_product_attention`), in the same order, so the logits are the same.

Source: LLaMA (Touvron et al. 2023, arXiv 2302.13971, section 2.2).
"""

from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor
from torch.nn.functional import embedding, linear, scaled_dot_product_attention, silu

from hopscope.runtime.errors import UsageError, first_line


class Rotation(BaseModel):
    """How positions turn queries and keys."""

    model_config = ConfigDict(frozen=True)

    rope_type: Literal["default"]
    rope_theta: float


class LlamaConfig(BaseModel):
    """What a configuration says of the forward pass, by transformers' names. Variants that this
    module does not compute are refused."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    model_type: Literal["llama"]
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_parameters: Rotation
    max_position_embeddings: int
    eos_token_id: int
    hidden_act: Literal["silu"]
    attention_bias: Literal[False]
    mlp_bias: Literal[False]
    tie_word_embeddings: Literal[True]

    def get_text_config(self) -> "LlamaConfig":
        """Itself, as in transformers' configurations."""
        return self


class KeysAndValues(Protocol):
    """The cache of all layers."""

    def update(self, keys: Tensor, values: Tensor, layer: int, /) -> tuple[Tensor, Tensor]:
        """Append to a layer; returns all of its keys and values, (row, head, token,
        coordinate)."""
        ...


class Output(NamedTuple):
    """What a forward pass gives."""

    logits: Tensor
    """(row, position, token)."""


class Llama:
    """A causal language model, called as transformers' models are."""

    def __init__(self, config: LlamaConfig, weights: dict[str, Tensor]) -> None:
        """`weights` go by the names in a checkpoint."""
        self.config = config
        self._embedding = weights["model.embed_tokens.weight"]
        self._norm = weights["model.norm.weight"]
        self._layers = [
            _Layer(config, number, weights) for number in range(config.num_hidden_layers)
        ]
        self.device = self._embedding.device
        self.dtype = self._embedding.dtype
        pairs = torch.arange(0, config.head_dim, 2, dtype=torch.float)
        theta = config.rope_parameters.rope_theta
        self._frequencies = (1.0 / (theta ** (pairs / config.head_dim))).to(self.device)

    def __call__(self, **inputs: Any) -> Output:
        return self.forward(**inputs)

    def forward(
        self,
        *,
        input_ids: Tensor,
        attention_mask: Tensor,
        position_ids: Tensor,
        past_key_values: KeysAndValues,
        logits_to_keep: int,
        use_cache: Literal[True],
    ) -> Output:
        """
        Args:
            input_ids: (row, position), the new tokens.
            attention_mask: (row, position), 1 for a token in the cache or a new one, 0 for padding.
            position_ids: (row, position), of the new tokens.
            past_key_values: receives the keys and values of the new tokens.
            logits_to_keep: number of last positions whose logits are computed.
            use_cache: the cache is always used.
        """
        angles = position_ids[..., None].float() * self._frequencies
        angles = torch.cat((angles, angles), dim=-1)[:, None]
        turn = angles.cos(), angles.sin()
        mask = _mask(attention_mask, input_ids.shape[1])
        hidden = embedding(input_ids, self._embedding)
        for layer in self._layers:
            hidden = layer.forward(hidden, turn, mask, past_key_values)
        hidden = _normed(hidden[:, -logits_to_keep:], self._norm, self.config.rms_norm_eps)
        return Output(linear(hidden, self._embedding))


class _Layer:
    def __init__(self, config: LlamaConfig, number: int, weights: dict[str, Tensor]) -> None:
        self._number = number
        self._head_dim = config.head_dim
        self._epsilon = config.rms_norm_eps

        def own(name: str) -> Tensor:
            return weights[f"model.layers.{number}.{name}.weight"]

        self._query, self._key, self._value, self._out = (
            own(f"self_attn.{side}_proj") for side in "qkvo"
        )
        self._gate, self._up, self._down = (
            own(f"mlp.{part}_proj") for part in ("gate", "up", "down")
        )
        self._before, self._after = own("input_layernorm"), own("post_attention_layernorm")

    def forward(
        self,
        hidden: Tensor,
        turn: tuple[Tensor, Tensor],
        mask: Tensor | None,
        cache: KeysAndValues,
    ) -> Tensor:
        hidden = hidden + self._attention(
            _normed(hidden, self._before, self._epsilon), turn, mask, cache
        )
        normed = _normed(hidden, self._after, self._epsilon)
        gated = silu(linear(normed, self._gate)) * linear(normed, self._up)
        return hidden + linear(gated, self._down)

    def _attention(
        self,
        hidden: Tensor,
        turn: tuple[Tensor, Tensor],
        mask: Tensor | None,
        cache: KeysAndValues,
    ) -> Tensor:
        rows, columns = hidden.shape[:2]
        query, key, value = (
            linear(hidden, weight).view(rows, columns, -1, self._head_dim).transpose(1, 2)
            for weight in (self._query, self._key, self._value)
        )
        keys, values = cache.update(_turned(key, turn), value, self._number)
        attended = scaled_dot_product_attention(
            _turned(query, turn),
            keys,
            values,
            attn_mask=mask,
            is_causal=mask is None and columns > 1,
            scale=self._head_dim**-0.5,
        )
        return linear(attended.transpose(1, 2).reshape(rows, columns, -1), self._out)


def _mask(tokens: Tensor, columns: int) -> Tensor | None:
    """Which keys each new token sees, (row, 1, new token, key); None where torch's own causal
    pattern says the same."""
    width = tokens.shape[1]
    if columns in (1, width) and bool(tokens.all()):
        return None
    places = torch.arange(width, device=tokens.device)
    causal = places <= places[width - columns :, None]
    return causal & tokens.bool()[:, None, None]


def _normed(hidden: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return weight * (hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + epsilon))


def _turned(vectors: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = turn
    first, second = vectors.chunk(2, dim=-1)
    return vectors * cos + torch.cat((-second, first), dim=-1) * sin


def load(folder: Path, *, device: str) -> Llama:
    """A model in single precision, from a folder saved with `save_pretrained`.

    Raises:
        UsageError: it is another model, or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        config = LlamaConfig.model_validate_json((folder / "config.json").read_bytes())
        weights = load_file(folder / "model.safetensors", device=device)
        return Llama(config, {name: each.float() for name, each in weights.items()})
    except (OSError, ValidationError, SafetensorError, KeyError) as error:
        raise UsageError(
            f"model folder {folder} cannot be read as an embedded Llama: {first_line(error)}; "
            "install hopscope again, or name the model by hf:FOLDER"
        ) from error
