"""The embedded readers' own forward pass and tokenizer against transformers'."""

import json
import random
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import rms_norm, scaled_dot_product_attention
from transformers import AutoTokenizer, DynamicCache, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from hopscope.runtime.corpora import hopland
from hopscope.runtime.errors import UsageError
from hopscope.runtime.generation.caches.roomy import RoomyCache
from hopscope.runtime.generation.forwarding import Forwarder
from hopscope.runtime.models import linear, llama
from hopscope.runtime.models.fast_tokenizer import FastTokenizer
from hopscope.runtime.models.parts import Part
from hopscope.runtime.readers import hf, tiny
from hopscope.runtime.types import GenerationRequest, Message, Prompt, ScoreRequest

TEXTS = [each.text for each in list(hopland.corpus())[:40]]
HARD = ["", " ", "  a", "naïve Æsop\n\n\t☃ 12,345", "<|user|>x</s>", "</s>", "\x00 \u202e e\u0301"]


@pytest.mark.parametrize("folder", tiny.FOLDERS.values(), ids=tiny.FOLDERS)
def test_logits_are_those_of_transformers(folder: Any) -> None:
    """Passes as the decoder makes them: padded rows, tokens after a cache, one token of each row;
    and of one row without padding. Queries without any key, in the padding, have none to compare.
    In double precision the logits are the same; in single precision they are as near to those as
    transformers' are.
    """
    exact = [Forwarder(doubled(folder)), transformers(folder, torch.float64)]
    rounded = [Forwarder(llama.load(folder, device="cpu")), transformers(folder, torch.float32)]
    off = torch.zeros(2, dtype=torch.float64)
    for lengths in ([23], [23, 9, 40], [190, 70]):
        logits = list(zip(*(passes(each, lengths) for each in (*exact, *rounded)), strict=True))
        for one, other, ours, theirs in logits:
            assert one.shape == ours.shape == other.shape
            assert torch.allclose(one, other, rtol=0, atol=5e-6)
            assert torch.allclose(ours, one, rtol=0, atol=3e-4)
            off += torch.stack([(each - other).square().mean() for each in (ours, theirs)])
    assert off[0] <= 4 * off[1]


def passes(forwarder: Forwarder, lengths: list[int]) -> list[Any]:
    """The logits of three passes."""
    generator = torch.Generator().manual_seed(0)
    cache: Any = RoomyCache() if isinstance(forwarder.model, llama.Llama) else DynamicCache()
    mask = forwarder.mask(lengths)
    logits = []
    with torch.inference_mode():
        for columns in (mask.shape[1], 5, 1):
            if columns < mask.shape[1]:
                mask = torch.cat([mask, mask.new_ones(len(lengths), columns)], dim=1)
            ids = torch.randint(1000, (len(lengths), columns), generator=generator)
            logits.append(forwarder.forward(ids, mask, cache, keep=3).double())
    return logits


def doubled(folder: Path) -> llama.Llama:
    config = llama.LlamaConfig.model_validate_json((folder / "config.json").read_bytes())
    weights = load_file(folder / "model.safetensors")
    return llama.Llama(config, {name: each.double() for name, each in weights.items()})


def transformers(folder: Path, dtype: torch.dtype) -> Forwarder:
    model = LlamaForCausalLM.from_pretrained(str(folder), dtype=dtype)
    if dtype == torch.float64:  # its norms would compute in single precision
        for module in model.modules():
            if isinstance(module, LlamaRMSNorm):
                module.forward = partial(
                    rms_norm,
                    normalized_shape=module.weight.shape,
                    weight=module.weight,
                    eps=module.variance_epsilon,
                )
    return Forwarder(model)


@pytest.mark.parametrize("folder", tiny.FOLDERS.values(), ids=tiny.FOLDERS)
def test_parts_of_a_pass_are_as_if_alone(folder: Any) -> None:
    """Prompts of unequal length, one after a cache, and rows that continue by one token."""
    forwarder = Forwarder(doubled(folder))
    generator = torch.Generator().manual_seed(0)

    def some(rows: int, columns: int) -> torch.Tensor:
        return torch.randint(1000, (rows, columns), generator=generator)

    shapes = [(1, 700), (1, 1), (3, 20), (1, 9)]
    begun = [(some(rows, 12), RoomyCache(), RoomyCache()) for rows, _ in shapes[1:3]]
    pairs = []
    with torch.inference_mode():
        for ids, *caches in begun:
            for cache in caches:
                forwarder.forward(ids, torch.ones_like(ids), cache, keep=1)
        caches = [
            [RoomyCache(), RoomyCache()],
            *(list(each) for _, *each in begun),
            [RoomyCache(), RoomyCache()],
        ]
        for (rows, columns), both in zip(shapes, caches, strict=True):
            ids = some(rows, columns)
            before = 12 if both[0].layers else 0
            mask = torch.ones(rows, before + columns, dtype=torch.long)
            pairs.append([Part(ids, mask, cache, min(2, columns)) for cache in both])
        joined = forwarder.together([one for one, _ in pairs])
        for (_, part), logits in zip(pairs, joined, strict=True):
            [alone] = forwarder.together([part])
            assert logits.shape == alone.shape == (len(part.ids), part.keep, alone.shape[2])
            assert torch.allclose(logits, alone, rtol=0, atol=1e-9)
    assert forwarder.counted.passes == 2 * len(begun) + 1 + len(pairs)


def test_replies_in_one_sequence_are_as_if_each_were_alone() -> None:
    """Two replies to a prompt, drawn in turn; the second parts from the first after a token."""
    forwarder = Forwarder(doubled(next(iter(tiny.FOLDERS.values()))))
    tokens = torch.randint(1000, (1, 105), generator=torch.Generator().manual_seed(0))
    replies = [[*range(101), 102, 104], [*range(101), 101, 103]]
    sees = torch.ones(105, 105).tril().bool()
    for own, other in ([102, 104], [101, 103]), ([101, 103], [102, 104]):
        sees[torch.tensor(own)[:, None], torch.tensor(other)] = False
    shared = RoomyCache(spare=3)
    with torch.inference_mode():
        found = [
            forwarder.together([Part(tokens[:, part], mask, shared, keep=2)])[0]
            for part, mask in (
                (slice(101), None),
                (slice(101, 103), sees[None, 101:103, :103]),
                (slice(103, 105), sees[None, 103:, :]),
            )
        ]
        for reply, place in zip(replies, (1, 0), strict=True):
            [alone] = forwarder.together([Part(tokens[:, reply], None, RoomyCache(), keep=2)])
            together = torch.stack([each[0, place] for each in found[1:]])
            assert torch.allclose(together, alone[0], rtol=0, atol=1e-9)
    assert shared.tokens == shared.columns == 105  # of which the last widened it


def test_long_parts_share_a_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    """A square for each would take as much memory as its keys and values."""
    model = llama.load(next(iter(tiny.FOLDERS.values())), device="cpu")
    masks: dict[int, torch.UntypedStorage] = {}

    def watched(
        *sides: torch.Tensor, attn_mask: torch.Tensor | None = None, scale: float
    ) -> torch.Tensor:
        if attn_mask is not None:
            memory = attn_mask.untyped_storage()
            masks[memory.data_ptr()] = memory
        return scaled_dot_product_attention(*sides, attn_mask=attn_mask, scale=scale)

    monkeypatch.setattr(llama, "scaled_dot_product_attention", watched)
    with torch.inference_mode():
        model.together([Part(torch.arange(n)[None], None, RoomyCache()) for n in (700, 650, 600)])
    assert masks
    assert sum(memory.nbytes() for memory in masks.values()) < 600 * 600 * 4


def test_the_last_layer_goes_on_with_wanted_tokens_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a prompt only the last token is drawn from: most of the last layer was in vain."""
    model = llama.load(next(iter(tiny.FOLDERS.values())), device="cpu")
    layers = model.config.num_hidden_layers
    added: list[int] = []
    add = llama._Layer.add

    def watched(layer: Any, hidden: torch.Tensor, attended: torch.Tensor) -> None:
        added.append(len(hidden))
        add(layer, hidden, attended)

    monkeypatch.setattr(llama._Layer, "add", watched)
    caches = [RoomyCache(), RoomyCache()]
    tokens = (300, 200)
    with torch.inference_mode():
        model.together(
            [
                Part(torch.arange(n)[None], None, cache)
                for n, cache in zip(tokens, caches, strict=True)
            ]
        )
    assert sum(added[:-1]) == (layers - 1) * linear.rounded(sum(tokens))
    assert added[-1] == linear.rounded(len(tokens))
    assert [cache.tokens for cache in caches] == [*tokens]


def test_a_mask_as_on_a_gpu_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """There a prompt has a mask of (token, key), of which the last layer needs some rows."""
    model = llama.load(next(iter(tiny.FOLDERS.values())), device="cpu")

    def passes() -> list[torch.Tensor]:
        cache, found = RoomyCache(), []
        with torch.inference_mode():
            for ids, keep in ((range(20), 3), (range(7), 7), (range(1), 1)):
                [logits] = model.together([Part(torch.tensor([[*ids]]), None, cache, keep)])
                found.append(logits)
        return found

    def square(part: Part, dtype: torch.dtype) -> torch.Tensor:
        columns, past = part.ids.shape[1], part.cache.tokens
        return torch.full((columns, past + columns), -torch.inf, dtype=dtype).triu(past + 1)

    without = passes()
    monkeypatch.setattr(llama, "_mask", square)
    for masked, plain in zip(passes(), without, strict=True):
        assert torch.allclose(masked, plain, rtol=0, atol=1e-4)


@pytest.mark.parametrize("folder", tiny.FOLDERS.values(), ids=tiny.FOLDERS)
def test_tokens_and_chats_are_those_of_transformers(folder: Any) -> None:
    ours, theirs = FastTokenizer(folder), AutoTokenizer.from_pretrained(str(folder))
    for text in [*TEXTS, *HARD]:
        ids = ours(text).input_ids
        assert ids == theirs(text).input_ids
        for skip in (True, False):
            options: Any = {"skip_special_tokens": skip, "clean_up_tokenization_spaces": False}
            assert ours.decode(ids, **options) == theirs.decode(ids, **options)
        chat = [{"role": "system", "content": text}, {"role": "user", "content": f"{text}\n"}]
        chat = [*chat, {"role": "assistant", "content": "so"}]
        for ask in (True, False):
            told: Any = {"tokenize": False, "add_generation_prompt": ask}
            assert ours.apply_chat_template(chat, **told) == theirs.apply_chat_template(
                chat, **told
            )
    for name in ("eos_token_id", "unk_token_id", "chat_template"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.get_vocab() == theirs.get_vocab()
    added = (each.added_tokens_decoder for each in (ours, theirs))
    one, other = ({n: (t.content, t.special) for n, t in each.items()} for each in added)
    assert one == other


def test_replies_and_scores_are_those_of_the_reader_hf() -> None:
    dice = random.Random(0)
    requests = [
        GenerationRequest(
            prompt=Prompt(
                messages=(
                    Message(role="system", content="Answer the question."),
                    Message(role="user", content="\n".join([*dice.sample(TEXTS, i), "Who?"])),
                ),
                prefix="The" if i % 2 else "",
            ),
            n=3,
            max_tokens=6,
            seed=i,
        )
        for i in range(4)
    ]
    ours = tiny.build(prefix_cache=2_000_000)
    theirs = hf.build(model=str(tiny.FOLDER), device="cpu", prefix_cache=2_000_000)
    assert ours.name == theirs.name
    for one, other in zip(ours.generate(requests), theirs.generate(requests), strict=True):
        for mine, yours in zip(one, other, strict=True):
            assert (mine.text, mine.token_ids) == (yours.text, yours.token_ids)
            assert mine.logprobs == pytest.approx(yours.logprobs, abs=1e-4)
    given = [ScoreRequest(prompt=each.prompt, continuation=" Otto Jolmond") for each in requests]
    for scored, wanted in zip(ours.score(given), theirs.score(given), strict=True):
        assert scored.tokens == wanted.tokens
        assert scored.logprobs == pytest.approx(wanted.logprobs, abs=1e-4)


def test_another_model_in_its_place_is_refused(tmp_path: Any) -> None:
    config = (tiny.FOLDER / "config.json").read_text()
    (tmp_path / "config.json").write_text(config.replace('"silu"', '"gelu"'))
    with pytest.raises(UsageError, match="hf:FOLDER"):
        llama.load(tmp_path, device="cpu")


def test_heads_that_share_keys_and_values_are_refused(tmp_path: Any) -> None:
    """They were ignored, and the weights cut in the wrong places."""
    config = json.loads((tiny.FOLDER / "config.json").read_text())
    config["num_key_value_heads"] = config["num_attention_heads"] // 2
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UsageError, match="hf:FOLDER") as refused:
        llama.load(tmp_path, device="cpu")
    assert "share keys and values" in str(refused.value.__cause__)


def test_the_embedded_reader_imports_no_transformers() -> None:
    """Importing its models takes longer than all else that `run` does."""
    code = (
        "import sys\n"
        "from hopscope.runtime.readers import tiny\n"
        "tiny.build()\n"
        "print(*({'transformers', 'torch._dynamo', 'sklearn'} & set(sys.modules)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert told.stdout.strip() == ""
