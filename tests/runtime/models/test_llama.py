"""The embedded readers' own forward pass and tokenizer against transformers'."""

import random
import subprocess
import sys
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, DynamicCache, LlamaForCausalLM

from hopscope.runtime.corpora import hopland
from hopscope.runtime.errors import UsageError
from hopscope.runtime.generation.caches.roomy import RoomyCache
from hopscope.runtime.generation.forwarding import Forwarder
from hopscope.runtime.models import llama
from hopscope.runtime.models.fast_tokenizer import FastTokenizer
from hopscope.runtime.readers import hf, tiny
from hopscope.runtime.types import GenerationRequest, Message, Prompt, ScoreRequest

TEXTS = [each.text for each in list(hopland.corpus())[:40]]
HARD = ["", " ", "  a", "naïve Æsop\n\n\t☃ 12,345", "<|user|>x</s>", "</s>", "\x00 \u202e e\u0301"]


@pytest.mark.parametrize("folder", tiny.FOLDERS.values(), ids=tiny.FOLDERS)
def test_logits_are_those_of_transformers(folder: Any) -> None:
    """Passes as the decoder makes them: padded rows, tokens after a cache, one token of each row;
    and of one row without padding. Queries without any key, in the padding, have none to compare.
    """
    ours = Forwarder(llama.load(folder, device="cpu"))
    theirs = Forwarder(LlamaForCausalLM.from_pretrained(str(folder), dtype=torch.float32))
    generator = torch.Generator().manual_seed(0)
    for lengths in ([23], [23, 9, 40]):
        caches = RoomyCache(), DynamicCache()
        mask = ours.mask(lengths)
        with torch.inference_mode():
            for columns in (mask.shape[1], 5, 1):
                if columns < mask.shape[1]:
                    mask = torch.cat([mask, mask.new_ones(len(lengths), columns)], dim=1)
                ids = torch.randint(1000, (len(lengths), columns), generator=generator)
                one, other = (
                    model.forward(ids, mask, cache, keep=3)
                    for model, cache in zip((ours, theirs), caches, strict=True)
                )
                assert one.shape == other.shape
                assert torch.allclose(one, other, rtol=0, atol=1e-5)


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
