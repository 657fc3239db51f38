"""Checkpoints that the reader `fid` loads, and those that it refuses with the remedy."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hopscope.runtime.adapters.reader import of_model
from hopscope.runtime.errors import UsageError
from hopscope.runtime.readers import fid, hf
from tests import models


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return models.tiny_t5(tmp_path / "tiny")


def refused(folder: Path, build: Any = fid.build, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        build(model=str(folder), **options)
    return str(caught.value)


def changed(folder: Path, **entries: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))


def test_a_folder_is_named_by_its_content_and_precision(folder: Path) -> None:
    name = fid.build(model=str(folder), device="cpu").name
    assert name.startswith("tiny@")
    assert fid.build(model=str(folder), dtype="float16").name == f"{name}:float16"
    changed(folder, dropout_rate=0.2)
    assert fid.build(model=str(folder)).name != name


def test_a_model_without_an_encoder_is_for_hf(tmp_path: Path) -> None:
    gpt2 = models.tiny_gpt2(tmp_path / "gpt2")
    assert refused(gpt2).endswith(
        f"is a gpt2, which has no encoder that could read passages apart; read it as hf:{gpt2}"
    )


def test_a_t5_is_not_for_hf(folder: Path) -> None:
    told = "read it by Fusion-in-Decoder, fid:FOLDER_OR_HUB_ID (docs/readers.md)"
    assert told in refused(folder, hf.build)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    with pytest.raises(UsageError, match="fid:FOLDER_OR_HUB_ID"):
        of_model(model, AutoTokenizer.from_pretrained(folder))


@pytest.mark.parametrize("kind", ["bart", "bert", "vit"])
def test_another_kind_of_model(folder: Path, kind: str) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    told = refused(folder)
    assert f"is a {kind}" in told
    assert "T5 family alone (mt5, t5, umt5): name one, or another reader" in told


def test_weights_that_are_missing_or_of_another_shape(folder: Path) -> None:
    file = folder / "model.safetensors"
    weights = load_file(file)
    some = {name: each for name, each in weights.items() if "decoder.block.1" not in name}
    save_file(some, file, {"format": "pt"})
    assert "weights are missing or of another shape, first decoder.block.1" in refused(folder)
    save_file(weights, file, {"format": "pt"})
    changed(folder, d_ff=48)
    assert "weights are missing or of another shape" in refused(folder)


def test_a_configuration_without_the_first_token(folder: Path) -> None:
    changed(folder, decoder_start_token_id=None)
    (folder / "generation_config.json").unlink()
    assert "names no token that the decoder begins with; add decoder_start_token_id" in refused(
        folder
    )


def test_pickled_weights_and_adapters_are_not_loaded(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "only safetensors are loaded" in refused(folder)
    (folder / "adapter_config.json").write_text("{}")
    assert "which only the reader hf merges" in refused(folder)


def test_a_revision_of_a_local_folder(folder: Path) -> None:
    assert "a revision is for models on the hub" in refused(folder, revision="main")


def test_torch_is_loaded_by_build_alone_and_with_passive_threads(folder: Path) -> None:
    code = (
        "import os, sys\n"
        "from hopscope.runtime.readers import fid\n"
        "assert not {'torch', 'transformers', 'huggingface_hub'} & set(sys.modules)\n"
        f"fid.build(model={str(folder)!r})\n"
        "print(os.environ['OMP_WAIT_POLICY'])\n"
    )
    environment = {name: text for name, text in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "passive\n", done.stderr
