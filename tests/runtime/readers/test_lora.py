"""LoRA adapters as peft saves them: the reader says what base model and adapter say together."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from hopscope.runtime.errors import MissingExtraError, UsageError
from hopscope.runtime.models.checkpoint import locate
from hopscope.runtime.readers import hf
from hopscope.runtime.types import GenerationRequest
from tests import models
from tests.runtime.readers.test_hf_reader import PROMPTS

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
peft: Any = pytest.importorskip("peft")


@pytest.fixture(scope="module")
def adapted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The folder of an adapter, and base model and adapter as peft computes them."""
    place = tmp_path_factory.mktemp("lora")
    base = models.tiny_llama(place / "base")
    model = AutoModelForCausalLM.from_pretrained(base)
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"])
    tuned = peft.get_peft_model(model, config).eval()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1)
        for name, weight in tuned.named_parameters():
            if "lora_" in name:
                weight.copy_(torch.randn(weight.shape))
    tuned.save_pretrained(place / "adapter")
    return place / "adapter", tuned


@pytest.fixture
def folder(adapted: tuple[Path, Any], tmp_path: Path) -> Path:
    """A copy of the adapter to spoil."""
    return Path(shutil.copytree(adapted[0], tmp_path / "adapter"))


def changed(folder: Path, **fields: Any) -> Path:
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))
    return folder


def refused(folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        hf.build(model=str(folder), device="cpu")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_it_says_what_base_and_adapter_say(adapted: tuple[Path, Any]) -> None:
    folder, tuned = adapted
    reader: Any = hf.build(model=str(folder), device="cpu")
    plain: Any = hf.build(model=str(folder.parent / "base"), device="cpu")
    request = GenerationRequest(prompt=PROMPTS[0], max_tokens=8, n=3, temperature=1.0)
    for sample in reader.generate([request])[0]:
        ids = [*reader._renderer.prompt_ids(request.prompt), *sample.token_ids]
        with torch.inference_mode():
            logits = tuned(torch.tensor([ids])).logits[0].double()
        logprobs = torch.log_softmax(logits[-len(sample.token_ids) - 1 : -1], dim=-1)
        right = [float(row[token]) for row, token in zip(logprobs, sample.token_ids, strict=True)]
        assert sample.logprobs == pytest.approx(right, abs=1e-4)
    assert plain.generate([request]) != reader.generate([request])


def test_its_name_tells_adapter_and_base(adapted: tuple[Path, Any]) -> None:
    folder, _ = adapted
    name = hf.build(model=str(folder), device="cpu").name
    assert name.startswith("adapter@")
    assert name.endswith(f"+{hf.build(model=str(folder.parent / 'base'), device='cpu').name}")


def test_a_tokenizer_of_its_own_goes_before_the_base_model_s(folder: Path) -> None:
    assert locate(str(folder), adapters=True).vocabulary.name == "base"
    models.tokenizer(chat=False).save_pretrained(folder)
    assert locate(str(folder), adapters=True).vocabulary == folder
    reader: Any = hf.build(model=str(folder), device="cpu")
    assert reader._tokenizer.chat_template is None


def test_without_peft_the_extra_is_named(
    adapted: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hf, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hopscope\[lora\]'"):
        hf.build(model=str(adapted[0]), device="cpu")


def test_a_base_model_that_is_not_at_hand_is_told(folder: Path) -> None:
    told = refused(changed(folder, base_model_name_or_path="./gone/base"))
    assert "its base model is not at hand: no model folder ./gone/base" in told
    assert told.endswith("adapter_config.json names it in base_model_name_or_path")
    told = refused(changed(folder, base_model_name_or_path=None))
    assert told.endswith(
        "names no base model; write its folder or hub id there as base_model_name_or_path"
    )


def test_other_adapters_and_pickles_are_refused(folder: Path) -> None:
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    told = refused(folder)
    assert "it has no adapter_model.safetensors, and only safetensors are loaded; copy the" in told
    assert "is of the kind IA3; only LORA can be" in refused(changed(folder, peft_type="IA3"))
    (folder / "adapter_config.json").write_text("[" * 100_000)
    assert "its adapter_config.json is damaged; save the adapter again" in refused(folder)


def test_an_adapter_of_another_model_is_refused(folder: Path, tmp_path: Path) -> None:
    other = models.tiny_llama(tmp_path / "wide", hidden_size=64)
    assert "the adapter cannot be merged" in refused(
        changed(folder, base_model_name_or_path=str(other))
    )
    deeper = models.tiny_llama(tmp_path / "deep", num_hidden_layers=3)
    assert "the adapter cannot be merged" in refused(
        changed(folder, base_model_name_or_path=str(deeper))
    )


def test_modules_that_it_names_are_not_imported(folder: Path, tmp_path: Path) -> None:
    """peft would import what `megatron_core` names."""
    (tmp_path / "evil.py").write_text("raise SystemExit('this must never run')")
    changed(
        folder,
        megatron_config={"x": 1},
        megatron_core="evil",
        auto_mapping={"base_model_class": "Evil", "parent_library": "evil"},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        assert hf.build(model=str(folder), device="cpu").name


def test_a_folder_with_both_is_refused(folder: Path) -> None:
    """transformers would silently load the adapter's base model in place of this one."""
    for path in (folder.parent / "base").glob("*"):
        shutil.copy(path, folder)
    base = models.tiny_llama(folder.parent / "whole")
    for path in base.iterdir():
        shutil.copy(path, folder)
    assert "it holds a model and an adapter" in refused(folder)


def test_who_does_not_merge_adapters_says_so(folder: Path) -> None:
    with pytest.raises(UsageError, match="an adapter without its base model"):
        locate(str(folder))
