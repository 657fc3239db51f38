"""What the reader `hf` does not read: told before the weights are, with a way out."""

from pathlib import Path
from typing import Any

import pytest
from transformers import CONFIG_MAPPING

from hopscope.runtime.errors import UsageError
from hopscope.runtime.readers import hf
from hopscope.runtime.types import GenerationRequest
from tests import zoo
from tests.runtime.readers.test_hf_reader import PROMPTS

SERVER = "openai:URL#MODEL"
ENCODER = "index build --kind dense"
FUSION = "fid:FOLDER_OR_HUB_ID"
REFUSED = {
    "recurrent_gemma": ("keeps its state in its modules", SERVER),
    "minimax": ("takes a cache of its own", SERVER),
    "nemotron_h": ("time_step_min", SERVER),
    "zamba2": ("time_step_min", SERVER),
    "mamba": ("no keys and values of each token", SERVER),
    "mamba2": ("no keys and values of each token", SERVER),
    "falcon_mamba": ("no keys and values of each token", SERVER),
    "rwkv": ("no keys and values of each token", SERVER),
    "xlstm": ("no keys and values of each token", SERVER),
    "bert": ("fills in masked words", ENCODER),
    "roberta": ("fills in masked words", ENCODER),
    "xlm-roberta": ("fills in masked words", ENCODER),
    "electra": ("fills in masked words", ENCODER),
    "modernbert": ("no causal language model", ENCODER),
    "deberta-v2": ("no causal language model", ENCODER),
    "bart": ("encodes a text before it writes", SERVER),
    "t5": ("no causal language model", FUSION),
    "mt5": ("no causal language model", FUSION),
    "umt5": ("no causal language model", FUSION),
    "vit": ("no causal language model", SERVER),
}


def unread(folder: Path, config: Any) -> Path:
    """A checkpoint whose weights cannot be read, so that nobody has tried."""
    config.save_pretrained(folder)
    zoo._tokenizer().save_pretrained(folder)
    (folder / "model.safetensors").write_bytes(b"none")
    return folder


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_before_its_weights_are_read(name: str, tmp_path: Path) -> None:
    if zoo.missing(name):
        pytest.skip(f"this transformers has no {name}")
    folder = unread(tmp_path / "model", CONFIG_MAPPING[name]())
    with pytest.raises(UsageError) as caught:
        hf.build(model=str(folder), device="cpu")
    told = str(caught.value)
    assert f"is a {name}" in told
    assert all(part in told for part in REFUSED[name])
    assert "\n" not in told


def other(folder: Path, name: str, *, dtype: hf.Dtype = "auto", **options: Any) -> Any:
    made = zoo.save(folder / name, zoo.configuration(name, **options))
    return hf.build(model=str(made), device="cpu", dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["roberta", "roformer"])
def test_another_kind_that_comes_out_wrong_is_refused(
    name: str, dtype: hf.Dtype, tmp_path: Path
) -> None:
    """One numbers positions by the place in the row, padding or not; the other's mask does not
    know of many tokens behind those that are kept."""
    told = rf"is a {name}, whose log-probabilities change by .* nats"
    with pytest.raises(UsageError, match=told):
        other(tmp_path, name, dtype=dtype, is_decoder=True)


def test_another_kind_that_fails_is_refused(tmp_path: Path) -> None:
    """Without a layer of attention its cache does not tell how long it is."""
    layers = {"layer_types": ["linear_attention"] * 2, **zoo.EXPERTS, **zoo.LATENT}
    with pytest.raises(UsageError, match="is a kimi_linear, which does not compute in batches"):
        other(tmp_path, "kimi_linear", **layers)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_another_kind_that_comes_out_right_is_read(dtype: hf.Dtype, tmp_path: Path) -> None:
    reader = other(tmp_path, "bert", dtype=dtype, is_decoder=True)
    assert reader.generate([GenerationRequest(prompt=PROMPTS[0], max_tokens=3)])[0][0].token_ids
