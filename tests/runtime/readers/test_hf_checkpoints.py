"""Finding, naming and loading models; and everything a user can get wrong about it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from hopscope.runtime.components import parse_options
from hopscope.runtime.errors import HopscopeError, UsageError
from hopscope.runtime.models import checkpoint
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf, tiny
from hopscope.runtime.types import GenerationRequest, ScoreRequest
from tests import models

PROMPT = prompts.short_answer("Who?")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return models.tiny_llama(tmp_path / "llama")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache, and no way to the hub."""
    cache = tmp_path / "hub"
    cache.mkdir()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    return cache


def add_to_cache(hub: Path, model: str, folder: Path, commit: str = "c0ffee" * 6 + "abcd") -> None:
    """Lay a model into the cache as a download would."""
    home = hub / f"models--{model.replace('/', '--')}"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(commit)
    shutil.copytree(folder, home / "snapshots" / commit)


def refused(model: Path | str, **options: Any) -> str:
    """The one line that tells why a model is refused."""
    with pytest.raises(UsageError) as caught:
        hf.build(model=str(model), **options)
    message = str(caught.value)
    assert "\n" not in message
    assert "Traceback" not in message
    return message


# --- names ------------------------------------------------------------------------------------


def test_a_folder_is_named_by_its_content(folder: Path, tmp_path: Path) -> None:
    name = hf.build(model=str(folder)).name
    assert name.startswith("llama@")
    assert len(name) == len("llama@") + 12
    moved = shutil.copytree(folder, tmp_path / "elsewhere" / "llama")
    assert hf.build(model=str(moved)).name == name
    retrained = models.tiny_llama(tmp_path / "other" / "llama", seed=1)
    assert hf.build(model=str(retrained)).name != name


def test_large_weights_are_fingerprinted_by_samples(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two trainings of one architecture have the same header and size, so content must count."""
    monkeypatch.setattr(checkpoint, "WHOLE", 0)
    monkeypatch.setattr(checkpoint, "BLOCK", 64)
    retrained = models.tiny_llama(tmp_path / "other" / "llama", seed=1)
    assert checkpoint.fingerprint(folder) == checkpoint.fingerprint(folder)
    assert checkpoint.fingerprint(folder) != checkpoint.fingerprint(retrained)


def test_a_cached_hub_model_is_named_by_its_commit_and_loaded_offline(
    hub: Path, folder: Path
) -> None:
    add_to_cache(hub, "someone/small-model", folder)
    reader = hf.build(model="someone/small-model")
    assert reader.name == "someone/small-model@c0ffeec0ffee"
    assert reader.generate([GenerationRequest(prompt=PROMPT, max_tokens=2)])[0][0].token_ids


# --- precision --------------------------------------------------------------------------------


def test_half_precision_weights_are_computed_in_float32_on_the_processor(folder: Path) -> None:
    from transformers.models.auto.modeling_auto import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder)
    model.to(torch.bfloat16).save_pretrained(folder)
    exact: Any = hf.build(model=str(folder), device="cpu")
    assert exact._decoder._model.dtype == torch.float32
    coarse: Any = hf.build(model=str(folder), device="cpu", dtype="bfloat16")
    assert coarse._decoder._model.dtype == torch.bfloat16
    assert coarse.name == f"{exact.name}:bfloat16"
    request = ScoreRequest(prompt=PROMPT, continuation="Lisbon")
    one, other = coarse.score([request])[0], exact.score([request])[0]
    assert one.logprobs == pytest.approx(other.logprobs, abs=0.5)


# --- refusals ---------------------------------------------------------------------------------


def test_a_missing_folder(hub: Path, tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere") == f"no model folder {tmp_path / 'nowhere'}"
    assert refused("./nowhere") == "no model folder ./nowhere"


def test_a_hub_model_that_is_not_in_the_cache_and_cannot_be_downloaded(hub: Path) -> None:
    assert refused("someone/small-model") == (
        "no folder someone/small-model, none in the cache, and HF_HUB_OFFLINE forbids the "
        "download; unset it or fetch the model beforehand (hf download someone/small-model)"
    )


def test_a_half_downloaded_hub_model_is_not_loaded(hub: Path, folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    add_to_cache(hub, "someone/small-model", folder)
    message = refused("someone/small-model")
    assert "it has no weights" in message
    assert message.endswith("repeat it: hf download someone/small-model")


def test_a_file_instead_of_a_folder(folder: Path) -> None:
    assert refused(folder / "config.json").endswith(
        "is a file; give the folder that holds the model"
    )


def test_a_folder_without_a_configuration(tmp_path: Path) -> None:
    assert "it has no config.json" in refused(tmp_path)


def test_gguf_files_are_for_a_server(tmp_path: Path) -> None:
    (tmp_path / "model.Q4.gguf").touch()
    for given in (tmp_path, tmp_path / "model.Q4.gguf"):
        assert "llama-server -m FILE, then take --reader openai:http://" in refused(given)


def test_no_model_at_all() -> None:
    assert refused(" ") == "no model is named; give a folder or a hub id"


BROKEN: list[Any] = [
    [],
    "llama",
    {"model_type": ["llama"]},
    {"model_type": {"a": 1}},
    {"architectures": 5},
    {"num_hidden_layers": "two"},
    {"num_hidden_layers": -1},
    {"num_attention_heads": 0},
    {"num_attention_heads": None},
    {"num_key_value_heads": 3},
    {"num_key_value_heads": 0},
    {"hidden_size": None},
    {"hidden_size": [32]},
    {"hidden_act": "nothing"},
    {"hidden_act": 7},
    {"vocab_size": None},
    {"vocab_size": -5},
    {"vocab_size": "many"},
    {"rope_parameters": {"rope_type": "unheard"}},
    {"rope_parameters": {"rope_type": ["yarn"]}},
    {"rope_parameters": 5},
    {"dtype": "float99"},
    {"dtype": 16},
    {"quantization_config": {"quant_method": "unheard"}},
    {"quantization_config": 3},
    {"attn_implementation": ["sdpa"]},
    {"layer_types": ["unheard", "unheard"]},
    {"head_dim": 0},
    {"max_position_embeddings": "x"},
    {"rms_norm_eps": "x"},
    {"pad_token_id": 99999},
    {"tie_word_embeddings": "x"},
    {"per_layer_config": 4},
    {"text_config": 4},
]


@pytest.mark.parametrize("change", BROKEN, ids=str)
def test_a_broken_configuration_is_told_in_a_line(folder: Path, change: Any) -> None:
    """Or does no harm: then the model reads."""
    config = json.loads((folder / "config.json").read_text())
    broken = {**config, **change} if isinstance(change, dict) else change
    (folder / "config.json").write_text(json.dumps(broken))
    told = None
    try:
        reader = hf.build(model=str(folder), device="cpu")
        reader.generate([GenerationRequest(prompt=PROMPT, max_tokens=2)])
    except HopscopeError as error:
        told = str(error)
    assert told is None or told.startswith(("llama@", "model folder"))
    assert told is None or "\n" not in told


def test_deeply_nested_files_are_damaged(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text("[" * 100_000)
    assert refused(folder).endswith("model.safetensors.index.json is damaged; copy the model again")
    (folder / "config.json").write_text("[" * 100_000)
    assert refused(folder).endswith("its config.json is damaged; copy the model again")


@pytest.mark.parametrize("given", ["-1", "512 bananas", "x"])
def test_memory_that_is_no_amount(given: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_options(hf.build, {"model": "m", "prefix_cache": given})
    assert str(caught.value) == (
        f"option prefix_cache={given}: give a number of bytes, 0 or more, such as 512MB or 2GB"
    )
    found = parse_options(hf.build, {"model": "m", "prefix_cache": "2GB"})
    assert found["prefix_cache"] == 2_000_000_000


def test_pickled_weights_are_not_loaded(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    message = refused(folder)
    assert "pytorch_model.bin" in message
    assert "only safetensors are loaded; convert them" in message


def test_no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert "it has no weights (model.safetensors); copy them" in refused(folder)


def test_missing_shards(folder: Path) -> None:
    index = {"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model-1-of-2.safetensors").touch()
    assert refused(folder).endswith(
        "1 of 2 weight files are missing, first model-2-of-2.safetensors; copy them into the folder"
    )
    (folder / "model.safetensors.index.json").write_text("{")
    assert refused(folder).endswith("model.safetensors.index.json is damaged; copy the model again")


def test_no_tokenizer(folder: Path) -> None:
    """transformers would make one up from the model's type."""
    for path in folder.glob("token*"):
        path.unlink()
    assert "it has no tokenizer (tokenizer.json" in refused(folder)


def test_damaged_files(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    assert "its weights cannot be loaded: " in refused(folder)
    (folder / "tokenizer.json").write_text("{}")
    assert "its tokenizer cannot be loaded: " in refused(folder)
    (folder / "config.json").write_text("{")
    assert refused(folder).endswith("its config.json is damaged; copy the model again")


@pytest.mark.parametrize("change", [{"num_hidden_layers": 3}, {"intermediate_size": 48}])
def test_weights_that_do_not_fit_the_configuration(
    folder: Path, change: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    """transformers would fill the gaps with random numbers and only warn."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **change}))
    capsys.readouterr()
    message = refused(folder)
    assert "weights and configuration do not belong together: " in message
    assert "model.layers." in message
    assert capsys.readouterr().err == ""


def test_a_model_that_brings_its_own_code(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    code = {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}
    (folder / "config.json").write_text(
        json.dumps({**config, "model_type": "own", "auto_map": code})
    )
    (folder / "own.py").write_text("raise SystemExit('this must never run')")
    assert "its configuration cannot be used: " in refused(folder)


def test_a_model_that_is_no_language_model(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "vit"}))
    assert "is a vit, no causal language model; if a server can run it" in refused(folder)


def test_a_device_that_is_not_there(folder: Path) -> None:
    if not torch.backends.mps.is_available():
        assert refused(folder, device="mps") == "device mps is not available here; use auto or cpu"


def test_a_revision_of_a_local_folder(folder: Path) -> None:
    assert "a revision is for models on the hub" in refused(folder, revision="main")


# --- the embedded reader, and what importing costs --------------------------------------------


def test_the_embedded_reader_comes_from_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(tiny.FOLDERS["search"], tmp_path / "mine")
    monkeypatch.setitem(tiny.FOLDERS, "read", folder)
    assert tiny.build().name == hf.build(model=str(folder)).name


def test_a_missing_embedded_reader_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tiny.FOLDERS, "read", tmp_path / "hopland")
    with pytest.raises(UsageError, match="this installation lacks the embedded reader"):
        tiny.build()


def test_torch_is_loaded_by_build_alone_and_with_passive_threads(folder: Path) -> None:
    code = (
        "import os, sys\n"
        "from hopscope.runtime.readers import hf, tiny\n"
        "assert not {'torch', 'transformers', 'huggingface_hub'} & set(sys.modules)\n"
        f"hf.build(model={str(folder)!r})\n"
        "assert 'torch' in sys.modules\n"
        "print(os.environ['OMP_WAIT_POLICY'])\n"
    )
    environment = {name: text for name, text in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "passive\n"
    assert done.stderr == "", "loading draws nothing on the terminal"
