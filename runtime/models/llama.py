"""Llama's forward pass over torch alone, for the embedded readers.

Importing transformers' models takes longer than importing torch and answering a question. The
operations here are those of transformers' `LlamaForCausalLM` with attention by torch
(`scaled_dot_product_attention`); the logits differ by rounding, since maps of one input are one
matrix and contain the weights of the norm before them.

Source: LLaMA (Touvron et al. 2023, arXiv 2302.13971, section 2.2).
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from torch import Tensor, view_as_complex
from torch.linalg import vector_norm
from torch.nn.functional import embedding, scaled_dot_product_attention, silu

from hopscope.runtime.errors import UsageError, first_line
from hopscope.runtime.models.linear import product, rounded
from hopscope.runtime.models.parts import KeysAndValues, Part

TOGETHER = 512
"""Tokens whose maps are computed together on a processor: its cache holds what they need."""
ATTENDING = 64
"""Tokens whose attention is computed together on a processor: to the keys before the last of them,
while torch's own causal pattern computes nearly the whole square."""


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
    num_key_value_heads: int | None = None
    """As many as there are attention heads; None says the same."""
    head_dim: int
    rms_norm_eps: float
    rope_parameters: Rotation
    max_position_embeddings: int
    eos_token_id: int
    hidden_act: Literal["silu"]
    attention_bias: Literal[False]
    mlp_bias: Literal[False]
    tie_word_embeddings: Literal[True]

    @model_validator(mode="after")
    def _check_heads(self) -> "LlamaConfig":
        if self.num_key_value_heads not in (None, self.num_attention_heads):
            raise ValueError("heads that share keys and values are not computed here")
        return self

    def get_text_config(self) -> "LlamaConfig":
        """Itself, as in transformers' configurations."""
        return self


class Output(NamedTuple):
    """What a forward pass gives."""

    logits: Tensor
    """(row, position, token)."""


class _Seen(NamedTuple):
    """A part for its attention."""

    rows: int
    mask: Tensor | None
    """Added to the scores, broadcast to (row, head, new token, key): 0 for the keys that a new
    token sees. None: each sees itself and all before it."""
    cache: KeysAndValues
    columns: int
    """Last tokens of each row that attend."""

    def last(self, columns: int) -> "_Seen":
        """The part of which only the last `columns` tokens of each row attend."""
        mask = self.mask if self.mask is None else self.mask[..., -columns:, :]
        return self._replace(mask=mask, columns=columns)


class _Block(NamedTuple):
    """Tokens that go through a layer's maps together."""

    hidden: Tensor
    """(token, coordinate); every layer adds to it."""
    turn: Tensor
    """(token, 1, pair of coordinates), complex numbers."""
    sides: Tensor
    """Queries, keys and values, (token, head, coordinate)."""
    attended: Tensor
    """(token, coordinate)."""

    def split(self, size: int) -> "list[_Block]":
        """Blocks of so many tokens, the last one excepted."""
        return [_Block(*each) for each in zip(*(side.split(size) for side in self), strict=True)]


class Llama:
    """A causal language model, called as transformers' models are, or for several parts at once."""

    def __init__(self, config: LlamaConfig, weights: dict[str, Tensor]) -> None:
        """`weights` go by the names in a checkpoint."""
        self.config = config
        self._embedding = weights["model.embed_tokens.weight"]
        self._logits = product(self._embedding)
        self._norm = weights["model.norm.weight"]
        self._layers = [
            _Layer(config, number, weights) for number in range(config.num_hidden_layers)
        ]
        # What the first layer projects depends on the token alone: positions turn it afterwards.
        self._first = self._layers[0].sides(self._embedding)
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
        past_key_values: KeysAndValues,
        logits_to_keep: int,
        use_cache: Literal[True],
    ) -> Output:
        """A pass over one part, by transformers' names; the cache is always used."""
        part = Part(input_ids, attention_mask, past_key_values, logits_to_keep)
        return Output(self.together([part])[0])

    def together(self, parts: Sequence[Part]) -> list[Tensor]:
        """One pass over all parts; the logits of each, (row, position, token).

        No part is padded to another: attention is computed for each, all else for their tokens side
        by side.
        """
        counts = [part.ids.numel() for part in parts]
        seen = [
            _Seen(len(part.ids), _mask(part, self.dtype), part.cache, part.ids.shape[1])
            for part in parts
        ]
        # For all: a mask of each long part would take as much memory as its keys and values.
        earlier = _earlier(max(part.cache.tokens + part.ids.shape[1] for part in parts), self)
        tokens = sum(counts)
        together = TOGETHER if self.device.type == "cpu" else tokens
        # What is computed beyond the tokens is nobody's.
        beyond = parts[0].ids.new_zeros(rounded(tokens % together) - tokens % together)
        ids = torch.cat([*(part.ids.flatten() for part in parts), beyond])
        positions = torch.cat([*map(_positions, parts), beyond])
        angles = positions[:, None] * self._frequencies
        turn = torch.polar(torch.ones_like(angles), angles)[:, None]
        hidden = embedding(ids, self._embedding)
        size = self.config.head_dim
        # All layers write to the same memory, since the system clears every new page.
        every = _Block(
            hidden,
            turn,
            embedding(ids, self._first).unflatten(1, (-1, size)),
            hidden.new_empty(len(hidden), self.config.num_attention_heads * size),
        )
        every.attended[tokens:] = 0
        blocks = every.split(together)
        self._layers[0].turn(every)
        for layer, following in pairwise(self._layers):
            layer.attend(every.sides, seen, counts, earlier, every.attended[:tokens])
            for block in blocks:
                layer.add(block.hidden, block.attended)
                following.project(block)
        # The last layer gives keys and values of all tokens, and goes on with the wanted ones.
        kept = [
            own.view(*part.ids.shape, -1)[:, -part.keep :]
            for own, part in zip(hidden[:tokens].split(counts), parts, strict=True)
        ]
        wanted = [len(each) * each.shape[1] for each in kept]
        count = sum(wanted)
        computed = rounded(count) if self.device.type == "cpu" else count
        beyond = hidden.new_zeros(computed - count, hidden.shape[1])
        hidden = torch.cat([*(each.flatten(0, 1) for each in kept), beyond])
        attended = hidden.new_zeros(len(hidden), every.attended.shape[1])
        seen = [own.last(each.shape[1]) for own, each in zip(seen, kept, strict=True)]
        last = self._layers[-1]
        last.attend(every.sides, seen, counts, earlier, attended[:count])
        for some in zip(hidden.split(together), attended.split(together), strict=True):
            last.add(*some)
        every_logits = self._logits(_normed(hidden, self.config.rms_norm_eps) * self._norm)
        logits = every_logits[:count].split(wanted)
        return [own.unflatten(0, each.shape[:2]) for own, each in zip(logits, kept, strict=True)]


class _Layer:
    """Coordinates of queries and keys that turn together stand side by side, unlike in
    checkpoints: a turn is then one product of complex numbers. The maps contain the weights of the
    norms before them."""

    def __init__(self, config: LlamaConfig, number: int, weights: dict[str, Tensor]) -> None:
        self._number = number
        self._head_dim = config.head_dim
        self._heads = config.num_attention_heads
        self._epsilon = config.rms_norm_eps

        def own(name: str) -> Tensor:
            return weights[f"model.layers.{number}.{name}.weight"]

        before, after = own("input_layernorm"), own("post_attention_layernorm")
        query, key, value = (own(f"self_attn.{side}_proj") for side in "qkv")
        pairs = [each.unflatten(0, (-1, 2, config.head_dim // 2)) for each in (query, key)]
        query, key = (each.transpose(1, 2).flatten(0, 2) for each in pairs)
        self._turning = (len(query) + len(key)) // config.head_dim
        """Heads of queries and keys."""
        self._side = product(torch.cat([query, key, value]) * before)
        self._out = product(own("self_attn.o_proj"))
        self._gated = product(torch.cat([own("mlp.gate_proj"), own("mlp.up_proj")]) * after)
        self._down = product(own("mlp.down_proj"))

    def sides(self, hidden: Tensor) -> Tensor:
        """Queries, keys and values before they turn, (token, coordinate of all heads)."""
        return self._side(_normed(hidden, self._epsilon))

    def project(self, block: _Block) -> None:
        """Write queries, keys and values."""
        block.sides[:] = self.sides(block.hidden).unflatten(-1, (-1, self._head_dim))
        self.turn(block)

    def turn(self, block: _Block) -> None:
        """Turn queries and keys by their positions."""
        pairs = block.sides[:, : self._turning].unflatten(-1, (-1, 2))
        view_as_complex(pairs).mul_(block.turn)

    def add(self, hidden: Tensor, attended: Tensor) -> None:
        """Add to tokens what the layer makes of what they attended to, (token, coordinate)."""
        hidden += self._out(attended)
        gate, up = self._gated(_normed(hidden, self._epsilon)).chunk(2, dim=-1)
        hidden += self._down(silu(gate).mul_(up))

    def attend(
        self,
        sides: Tensor,
        seen: Sequence[_Seen],
        counts: list[int],
        earlier: Tensor,
        attended: Tensor,
    ) -> None:
        """Write what the tokens of each part attend to.

        Args:
            sides: of all parts' tokens, `counts` of them, and of some that are nobody's.
            earlier: see `_earlier`.
            attended: (token, coordinate), of the tokens that attend.
        """
        # Each side is (1, head, token, coordinate).
        heads = sides[: sum(counts)].transpose(0, 1)[None]
        each_side = heads.tensor_split((self._heads, self._turning), dim=1)
        found = []
        parts = zip(*(side.split(counts, dim=2) for side in each_side), seen, strict=True)
        for query, key, value, (rows, mask, cache, columns) in parts:
            if rows > 1:
                query, key, value = (_in_rows(side, rows) for side in (query, key, value))
            keys, values = cache.update(key, value, self._number)
            own = _attended(
                query[:, :, -columns:], keys, values, mask, earlier, self._head_dim**-0.5
            )
            found.append(own if rows == 1 else own.flatten(0, 1)[None])
        torch.cat(found, dim=1, out=attended.view(1, len(attended), self._heads, -1))


def _in_rows(side: Tensor, rows: int) -> Tensor:
    """(row, head, token, coordinate), from the tokens of all rows one after the other."""
    _, heads, _, size = side.shape
    return side.view(heads, rows, -1, size).transpose(0, 1)


def _attended(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    earlier: Tensor,
    scale: float,
) -> Tensor:
    """What new tokens attend to, (row, token, head, coordinate)."""
    columns, width = query.shape[2], keys.shape[2]
    if mask is None and columns == 1:
        return scaled_dot_product_attention(query, keys, values, scale=scale).transpose(1, 2)
    step = ATTENDING if query.device.type == "cpu" else columns
    found = []
    for first in range(0, columns, step):
        new = slice(first, min(first + step, columns))
        count, end = new.stop - first, width - columns + new.stop  # no token sees a later one
        start = earlier.shape[1] - ATTENDING - end + count
        own = earlier[:count, start : start + end] if mask is None else mask[..., new, :end]
        found.append(
            scaled_dot_product_attention(
                query[:, :, new],
                keys[:, :, :end],
                values[:, :, :end],
                attn_mask=own,
                scale=scale,
            ).transpose(1, 2)
        )
    return torch.cat(found, dim=1) if len(found) > 1 else found[0]


def _earlier(width: int, model: Llama) -> Tensor:
    """What tokens see that see themselves and all before them, in the form of masks. Any block of
    up to `ATTENDING` tokens and `width` keys finds its mask in it: with `count` tokens and `end`
    keys, the first `count` rows, and `end` columns from the place `width - end + count` on."""
    far = torch.full((ATTENDING, width + ATTENDING), float("-inf"), dtype=model.dtype)
    return far.triu_(width + 1).to(model.device)


def _positions(part: Part) -> Tensor:
    """Of the new tokens, (token,)."""
    rows, columns = part.ids.shape
    if part.mask is None:
        past = part.cache.tokens
        return torch.arange(past, past + columns, device=part.ids.device).repeat(rows)
    if part.mask.dim() == 3:
        return (part.mask.sum(dim=-1) - 1).flatten()
    every = (part.mask.cumsum(dim=-1) - 1).clamp(min=0)
    return every[:, -columns:].flatten()


def _mask(part: Part, dtype: torch.dtype) -> Tensor | None:
    """Added to the scores, broadcast to (row, head, new token, key): 0 for the keys that a new
    token sees. None: each sees itself and all before it; on a processor, the mask of a block is cut
    from `_earlier`."""
    columns = part.ids.shape[1]
    width = part.cache.tokens + columns
    if part.mask is not None and part.mask.dim() == 3:
        sees = part.mask[:, None]
    else:
        padded = part.mask is not None and not bool(part.mask.all())
        if not padded and (columns == 1 or part.ids.device.type == "cpu"):
            return None
        places = torch.arange(width, device=part.ids.device)
        sees = places <= places[width - columns :, None]
        if padded:
            assert part.mask is not None
            sees = sees & part.mask.bool()[:, None, None]
    return torch.zeros(sees.shape, dtype=dtype, device=sees.device).masked_fill_(
        ~sees, float("-inf")
    )


def _normed(hidden: Tensor, epsilon: float) -> Tensor:
    """Of mean square 1."""
    length = vector_norm(hidden, dim=-1, keepdim=True)
    return hidden * torch.rsqrt(length * length / hidden.shape[-1] + epsilon)


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
