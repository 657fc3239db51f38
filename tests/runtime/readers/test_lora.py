"""LoRA adapters as peft saves them: the reader says what base model and adapter say together."""

import copy
import json
import shutil
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from hopscope.api import parts
from hopscope.runtime.errors import MissingExtraError, UsageError
from hopscope.runtime.models.checkpoint import locate
from hopscope.runtime.readers import hf
from hopscope.runtime.types import GenerationRequest
from tests import models
from tests.runtime.readers.test_hf_checkpoints import add_to_cache
from tests.runtime.readers.test_hf_checkpoints import hub as hub
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
                # Larger ones saturate attention, where rounding is large.
                weight.copy_(0.3 * torch.randn(weight.shape))
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


def refused(folder: Path, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        hf.build(model=str(folder), device="cpu", **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_it_says_what_base_and_adapter_say(adapted: tuple[Path, Any]) -> None:
    folder, tuned = adapted
    exact = copy.deepcopy(tuned).double()
    reader: Any = hf.build(model=str(folder), device="cpu")
    plain: Any = hf.build(model=str(folder.parent / "base"), device="cpu")
    request = GenerationRequest(prompt=PROMPTS[0], max_tokens=8, n=3, temperature=1.0)
    for sample in reader.generate([request])[0]:
        ids = [*reader._renderer.prompt_ids(request.prompt), *sample.token_ids]
        with torch.inference_mode():
            logits = exact(torch.tensor([ids])).logits[0]
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
    assert told.endswith("; name the base model: hf:BASE,adapter=ADAPTER")
    told = refused(changed(folder, base_model_name_or_path=None))
    assert told.endswith("names no base model; name the base model: hf:BASE,adapter=ADAPTER")


def test_the_base_model_can_be_named(adapted: tuple[Path, Any], folder: Path) -> None:
    """Adapters from the hub often name a folder of the machine that trained them."""
    base = adapted[0].parent / "base"
    changed(folder, base_model_name_or_path="/gone/base")
    reader: Any = parts.reader(f"hf:{base},adapter={folder},device=cpu")
    assert reader.name.startswith("adapter@")
    assert reader.name.endswith(f"+{hf.build(model=str(base), device='cpu').name}")
    usual: Any = hf.build(model=str(adapted[0]), device="cpu")
    for (name, weight), (_, same) in zip(
        reader._decoder._model.named_parameters(),
        usual._decoder._model.named_parameters(),
        strict=True,
    ):
        assert torch.equal(weight, same), name


def test_a_wrong_adapter_is_told(adapted: tuple[Path, Any]) -> None:
    base = adapted[0].parent / "base"
    told = refused(base, adapter=str(base))
    assert "it has no adapter_config.json; give a folder that peft's save_pretrained" in told
    assert "no model folder ./gone" in refused(base, adapter="./gone")
    assert refused(base, adapter=" ") == "no model is named; give a folder or a hub id"
    told = refused(adapted[0], adapter=str(adapted[0]))
    assert "only the reader hf merges (hf:BASE,adapter=ADAPTER)" in told


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_rslora": True},
        {"use_dora": True},
        {"rank_pattern": {"v_proj": 2}, "alpha_pattern": {"q_proj": 3}},
    ],
    ids=["lora", "rslora", "dora", "patterns"],
)
def test_the_merged_weights_are_those_of_the_papers(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """W + s·B·A with s = alpha / r (Hu et al. 2022), alpha / sqrt(r) (rsLoRA), and normalised to
    the magnitudes m (DoRA), all from the adapter's file."""
    base = models.tiny_llama(tmp_path / "base")
    plain = AutoModelForCausalLM.from_pretrained(base)
    settings = {"r": 4, "lora_alpha": 6, "target_modules": ["q_proj", "v_proj"], **options}
    tuned = peft.get_peft_model(plain, peft.LoraConfig(**settings))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(2)
        for name, weight in tuned.named_parameters():
            if "lora_" in name:
                weight.copy_(torch.rand(weight.shape) * 0.3)
    tuned.save_pretrained(tmp_path / "adapter")
    saved = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    expected = AutoModelForCausalLM.from_pretrained(base)
    merged = 0
    for name, module in expected.named_modules():
        key = f"base_model.model.{name}.lora_"
        if f"{key}A.weight" not in saved:
            continue
        short = name.rpartition(".")[2]
        rank = settings.get("rank_pattern", {}).get(short, settings["r"])
        alpha = settings.get("alpha_pattern", {}).get(short, settings["lora_alpha"])
        scale = alpha / (sqrt(rank) if "use_rslora" in settings else rank)
        with torch.no_grad():
            module.weight += scale * (saved[f"{key}B.weight"] @ saved[f"{key}A.weight"])
            if "use_dora" in settings:
                norms = module.weight.norm(dim=1, keepdim=True)
                module.weight *= saved[f"{key}magnitude_vector"][:, None] / norms
        merged += 1
    assert merged == 4
    reader: Any = hf.build(model=str(base), adapter=str(tmp_path / "adapter"), device="cpu")
    ids = torch.tensor([reader._renderer.prompt_ids(PROMPTS[0])])
    with torch.inference_mode():
        found, right = reader._decoder._model(ids).logits, expected.eval()(ids).logits
        before = AutoModelForCausalLM.from_pretrained(base).eval()(ids).logits
    assert (found - right).abs().max() < 1e-5
    assert (found - before).abs().max() > 0.1


def test_what_cannot_be_merged_is_refused(folder: Path) -> None:
    """Activated LoRA changes weights only after certain tokens."""
    changed(folder, alora_invocation_tokens=[3], task_type="CAUSAL_LM")
    assert "the adapter cannot be merged into its base model" in refused(folder)


def test_an_adapter_in_the_hub_s_cache_needs_no_network(
    adapted: tuple[Path, Any], hub: Path
) -> None:
    """It was looked up on the hub each time, since an adapter is no whole model."""
    add_to_cache(hub, "some/adapter", adapted[0])
    base = str(adapted[0].parent / "base")
    reader = hf.build(model=base, adapter="some/adapter", device="cpu")
    assert reader.name.startswith("some/adapter@c0ffeec0ffee+base@")
    assert hf.build(model="some/adapter", device="cpu").name == reader.name


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
