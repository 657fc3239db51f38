"""Loads an encoder's checkpoint as the network that its convention pools from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import (
    AutoModel,
    DPRContextEncoder,
    DPRQuestionEncoder,
    RobertaModel,
)

from hopscope.runtime.encoders.conventions import Convention
from hopscope.runtime.encoders.naming import Model
from hopscope.runtime.errors import UsageError
from hopscope.runtime.models.devices import choose_device
from hopscope.runtime.models.loading import configuration, refusal, tokenizer_of, weights

Network = Callable[[Tensor, Tensor], Tensor]
"""Vectors (text, unit) of token numbers and mask (text, token), before scaling."""


class Ance(nn.Module):
    """RoBERTa, then a linear layer and layer normalisation over the first token."""

    def __init__(self, config: Any, units: int) -> None:
        super().__init__()
        self.roberta: Any = RobertaModel(config, add_pooling_layer=False)
        self.embeddingHead = nn.Linear(config.hidden_size, units)
        self.norm = nn.LayerNorm(units)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        states = self.roberta(input_ids=ids, attention_mask=mask).last_hidden_state
        pooled: Tensor = self.norm(self.embeddingHead(states[:, 0]))
        return pooled


class LoadedEncoder:
    """A tokenizer and the network behind it."""

    def __init__(self, model: Model, convention: Convention, *, device: str, query: bool) -> None:
        """Load one side of an encoder.

        Raises:
            UsageError: transformers cannot load it, or it is no model of this convention.
        """
        self.device = choose_device(device)
        self.config = configuration(model.folder, model.name)
        self.tokenizer = tokenizer_of(model.folder, model.name)
        self._module = _module(model, convention, self.config, device=self.device, query=query)
        self.network = _network(convention, self._module)


def _module(model: Model, convention: Convention, config: Any, *, device: str, query: bool) -> Any:
    kind = config.model_type
    wanted = {"head": "roberta", "decoder": "t5"}.get(convention.pooling, kind)
    wanted = "dpr" if convention.pair else wanted
    if kind != wanted:
        raise UsageError(f"{model.name} is a {kind}; encoders of {convention.name} are a {wanted}")
    if convention.pooling == "head":
        with refusal(f"{model.name}: its weights cannot be loaded"):
            return _ance(model.folder, config).to(device).eval()
    auto_model: Any = AutoModel
    if kind == "dpr":
        # AutoModel loads every DPR as a question encoder, and invents weights for passage encoders.
        auto_model = DPRQuestionEncoder if query else DPRContextEncoder
        stated = (getattr(config, "architectures", None) or [auto_model.__name__])[0]
        if stated != auto_model.__name__:
            side = "queries" if query else "passages"
            raise UsageError(
                f"{model.name} is a {stated}, {side} need a {auto_model.__name__}; "
                "name the passage model first, then the query model"
            )
    module, report = weights(auto_model, model.folder, model.name, device=device, config=config)
    # Their pooling layer is not used; many checkpoints leave it out.
    if missing := sorted(name for name in report["missing_keys"] if "pooler" not in name):
        raise UsageError(
            f"{model.name}: weights and configuration do not belong together: "
            f"{len(missing)} weights are missing, first {missing[0]}"
        )
    return module


def _ance(folder: Path, config: Any) -> Ance:
    read = load_file(folder / "model.safetensors")
    values = {name.removeprefix("ance_encoder."): value.float() for name, value in read.items()}
    if "embeddingHead.weight" not in values:
        raise ValueError("it has no embeddingHead, so it is no ANCE")
    module = Ance(config, values["embeddingHead.weight"].shape[0])
    wanted = module.state_dict().keys()
    module.load_state_dict({name: value for name, value in values.items() if name in wanted})
    return module


def _network(convention: Convention, module: Any) -> Network:
    def first(ids: Tensor, mask: Tensor) -> Tensor:
        output = module(input_ids=ids, attention_mask=mask)
        pooled: Tensor = output.pooler_output if convention.pair else output.last_hidden_state[:, 0]
        return pooled

    def mean(ids: Tensor, mask: Tensor) -> Tensor:
        states = module(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).to(states.dtype)
        pooled: Tensor = (states * weights).sum(dim=1) / weights.sum(dim=1)
        return pooled

    def decoder(ids: Tensor, mask: Tensor) -> Tensor:
        start = torch.zeros(len(ids), 1, dtype=torch.long, device=ids.device)
        output = module(input_ids=ids, attention_mask=mask, decoder_input_ids=start)
        pooled: Tensor = output.last_hidden_state[:, 0]
        return pooled

    known: dict[str, Network] = {"first": first, "mean": mean, "decoder": decoder, "head": module}
    return known[convention.pooling]
