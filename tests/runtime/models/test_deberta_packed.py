"""DeBERTa without padding gives transformers' outputs."""

import copy
import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

from hopscope.runtime.models import deberta_packed
from hopscope.runtime.models.deberta_packed import PackedEncoder, pack, packs
from hopscope.runtime.models.linear import bfloat16, eight_bits, laid_out, multiplies

LENGTHS = (40, 13, 1, 17, 40, 13)


def classifier(**settings: Any) -> DebertaV2ForSequenceClassification:
    shape: dict[str, Any] = {
        "vocab_size": 100,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "type_vocab_size": 0,
        "initializer_range": 0.2,
        "num_labels": 3,
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "max_position_embeddings": 64,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return DebertaV2ForSequenceClassification(DebertaV2Config(**(shape | settings))).eval()


def inputs() -> dict[str, torch.Tensor]:
    ids = torch.randint(
        100, (len(LENGTHS), max(LENGTHS)), generator=torch.Generator().manual_seed(1)
    )
    mask = (torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]).long()
    return {"input_ids": ids, "attention_mask": mask}


SETTINGS: dict[str, dict[str, Any]] = {
    "buckets": {"position_buckets": 16, "share_att_key": True, "norm_rel_ebd": "layer_norm"},
    "own-projections": {"position_buckets": 16},
    "no-buckets": {},
    "a-bucket-for-each": {"position_buckets": 64, "share_att_key": True},
    "to-positions-only": {"position_buckets": 16, "pos_att_type": ["c2p"]},
    "from-positions-only": {"position_buckets": 16, "pos_att_type": ["p2c"]},
    "published": {
        "max_position_embeddings": 512,
        "position_buckets": 256,
        "share_att_key": True,
        "position_biased_input": False,
        "conv_kernel_size": 3,
    },
    "one-layer-and-convolution": {"num_hidden_layers": 1, "conv_kernel_size": 3},
}


@pytest.mark.parametrize("cached", [1, 64, 384], ids=["alone", "few", "all"])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_verdicts_are_those_of_transformers(
    settings: dict[str, Any], cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deberta_packed, "CACHED", cached)
    model = classifier(**settings)
    own = copy.deepcopy(model)
    pack(own)
    with torch.inference_mode():
        wanted, found = model(**inputs()).logits, own(**inputs()).logits
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-4)
    assert wanted.std() > 1e-2


def test_states_of_all_tokens_stand_where_transformers_has_them() -> None:
    model = classifier(position_buckets=16)
    own: Any = copy.deepcopy(model)
    own.deberta.encoder = PackedEncoder(own.deberta.encoder, laid_out, first_only=False)
    with torch.inference_mode():
        wanted, found = (one.deberta(**inputs()).last_hidden_state for one in (model, own))
    there = inputs()["attention_mask"].bool()
    torch.testing.assert_close(found[there], wanted[there], rtol=0, atol=1e-4)
    assert not found[~there].any()


def test_no_padding_and_only_first_tokens_of_the_last_layer_are_computed() -> None:
    rows: list[int] = []

    def counted(parts: Any) -> Any:
        inner = laid_out(parts)

        def apply(tokens: torch.Tensor) -> torch.Tensor:
            rows.append(len(tokens))
            return inner(tokens)

        return apply

    model = classifier(position_buckets=16)
    pack(model, counted)
    with torch.inference_mode():
        model(**inputs())
    total, texts = sum(LENGTHS), len(LENGTHS)
    assert rows == [total] * 4 * 2 + [total] + [texts] * 4


def test_other_models_stay_with_transformers() -> None:
    assert packs(classifier())
    assert not packs(classifier().half())
    assert not packs(classifier().deberta)
    assert not packs(classifier(relative_attention=False, pos_att_type=None))


NARROW = pytest.mark.skipif(not multiplies("bfloat16"), reason="a processor without bfloat16")
WHOLE = pytest.mark.skipif(not multiplies("eight-bits"), reason="a processor without VNNI")


@pytest.mark.parametrize(
    "build", [pytest.param(bfloat16, marks=NARROW), pytest.param(eight_bits, marks=WHOLE)]
)
def test_approximations_are_near(build: Any) -> None:
    model = classifier(position_buckets=16)
    pack(own := copy.deepcopy(model), build)
    with torch.inference_mode():
        wanted, found = model(**inputs()).logits.softmax(1), own(**inputs()).logits.softmax(1)
    assert found.dtype == torch.float32
    assert 1e-6 < (found - wanted).abs().max() < 0.05


@NARROW
@WHOLE
def test_bfloat16_is_nearer_than_eight_bits() -> None:
    """Where a row has one large value, whole numbers leave the others few steps."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randn(40, 32, generator=generator)
    tokens[:, 0] *= 50
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        one = torch.nn.Linear(32, 24)
    with torch.inference_mode():
        exact = one(tokens)
        near, far = (
            (build([one])(tokens) - exact).abs().mean() for build in (bfloat16, eight_bits)
        )
    assert 0 < near < far / 2


@pytest.mark.parametrize(("texts", "parts"), [(12, [4, 4, 4]), (13, [4, 3, 3, 3]), (3, [3])])
def test_parts_of_a_batch_are_of_like_size(
    texts: int, parts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eleven, eleven and two texts took as many readings of the weights as three times eight."""
    rows: list[int] = []

    def counted(given: Any) -> Any:
        inner = laid_out(given)

        def apply(tokens: torch.Tensor) -> torch.Tensor:
            rows.append(len(tokens))
            return inner(tokens)

        return apply

    monkeypatch.setattr(deberta_packed, "CACHED", 45)
    model = classifier(position_buckets=16, num_hidden_layers=1)
    pack(model, counted)
    with torch.inference_mode():
        ids = torch.ones(texts, 10, dtype=torch.long)
        model(input_ids=ids, attention_mask=torch.ones_like(ids))
    assert rows[::5] == [10 * size for size in parts]


@WHOLE
def test_a_token_of_eight_bits_is_the_same_in_any_company() -> None:
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randn(40, 32, generator=generator)
    tokens[7] = 0.0
    one, other = torch.nn.Linear(32, 8), torch.nn.Linear(32, 24, bias=False)
    mapped = eight_bits([one, other])
    with torch.inference_mode():
        together = mapped(tokens)
        assert torch.equal(together[5:6], mapped(tokens[5:6] * 1))
        assert torch.equal(together, torch.cat([mapped(tokens[:7]), mapped(tokens[7:])]))
        exact = torch.cat([one(tokens), other(tokens)], dim=1)
    torch.testing.assert_close(together, exact, rtol=0, atol=0.05)
    assert torch.equal(together[7], exact[7])


@pytest.mark.parametrize("limit", [{}, {"ONEDNN_MAX_CPU_ISA": "AVX2"}])
def test_eight_bits_are_for_processors_whose_sums_are_exact(limit: dict[str, str]) -> None:
    """oneDNN without VNNI sums the largest products to less."""
    code = (
        "import torch\n"
        "from hopscope.runtime.models.linear import multiplies\n"
        "largest = torch.full((64, 64), 127, dtype=torch.int8)\n"
        "exact = torch.equal(torch._int_mm(largest, largest).long(), "
        "largest.long() @ largest.long())\n"
        "print(multiplies('eight-bits') == exact)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **limit},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n"
