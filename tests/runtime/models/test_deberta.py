"""DeBERTa's attention without the relative positions that a text does not have."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import DebertaV2Config, DebertaV2Model

from hopscope.runtime.models.deberta import NearAttention, keep_near


def shape(**settings: Any) -> DebertaV2Config:
    return DebertaV2Config(
        vocab_size=100,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        type_vocab_size=0,
        initializer_range=0.5,
        **settings,
    )


def models(**settings: Any) -> tuple[DebertaV2Model, DebertaV2Model]:
    """The same weights as transformers has them and kept near."""
    config = shape(relative_attention=True, pos_att_type=["p2c", "c2p"], **settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        plain = DebertaV2Model(config).eval()
    near = DebertaV2Model(config).eval()
    near.load_state_dict(plain.state_dict())
    keep_near(near)
    return plain, near


def last(model: DebertaV2Model, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = model(input_ids=ids, attention_mask=mask).last_hidden_state
    return found[mask.bool()]


@pytest.mark.parametrize("length", [1, 5, 15, 16, 17, 40, 64])
@pytest.mark.parametrize(
    "settings",
    [
        {"max_position_embeddings": 64, "position_buckets": 16, "share_att_key": True},
        {"max_position_embeddings": 64, "position_buckets": 16, "norm_rel_ebd": "layer_norm"},
        {"max_position_embeddings": 64},
        {"max_position_embeddings": 512, "position_buckets": 256, "share_att_key": True},
        {"max_position_embeddings": 64, "position_buckets": 64, "share_att_key": True},
    ],
    ids=["buckets", "own-projections", "no-buckets", "published", "a-bucket-for-each"],
)
def test_states_are_those_of_transformers(settings: dict[str, Any], length: int) -> None:
    plain, near = models(**settings)
    ids = torch.randint(100, (3, length), generator=torch.Generator().manual_seed(length))
    mask = torch.ones_like(ids)
    mask[1, -(length // 2) :] = 0 if length > 1 else 1
    torch.testing.assert_close(last(near, ids, mask), last(plain, ids, mask), rtol=0, atol=2e-5)


def test_a_short_text_projects_fewer_positions(count_rows: Callable[[DebertaV2Model], int]) -> None:
    plain, near = models(max_position_embeddings=512, position_buckets=256, share_att_key=True)
    assert count_rows(plain) == 512
    assert count_rows(near) == 12


@pytest.fixture
def count_rows() -> Callable[[DebertaV2Model], int]:
    def count(model: DebertaV2Model) -> int:
        rows: list[int] = []
        attention: Any = model.encoder.layer[0].attention
        attention.self.query_proj.register_forward_hook(
            lambda _, given, __: rows.append(given[0].shape[1])
        )
        ids = torch.ones(2, 6, dtype=torch.long)
        last(model, ids, torch.ones_like(ids))
        return max(rows)

    return count


def test_attention_without_relative_positions_is_left_alone() -> None:
    model = DebertaV2Model(shape(relative_attention=False, pos_att_type=None))
    keep_near(model)
    assert not any(isinstance(module, NearAttention) for module in model.modules())
