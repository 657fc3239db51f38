"""What a reader that searches is taught: the product's own prompts, and only what it writes."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from hopscope.lab.hopland.training import feeding, search_agent, tokenizer
from hopscope.lab.hopland.training.curriculum import STAGES
from hopscope.lab.hopland.training.search_agent import FORM, Transcript, Transcripts
from hopscope.lab.hopland.training.searched import Searched
from hopscope.runtime.generation.texts.rendering import Renderer
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.readers import hf
from hopscope.workflows.search_agent import tags

SMALL = Path(tokenizer.__file__).parents[1] / "small"


@cache
def known() -> PreTrainedTokenizerFast:
    return tokenizer.longer(SMALL, search_agent.words())


@pytest.fixture(scope="module")
def drawn() -> list[Transcript]:
    place: Any = SimpleNamespace(value=len(STAGES) - 1)
    [sampler] = _first(feeding.worlds(3, place, Searched))
    assert isinstance(sampler, Searched)
    drawing = Transcripts(sampler)
    return [drawing.draw() for _ in range(150)]


def _first(source: Iterator[Any]) -> list[Any]:
    return [next(source)]


def test_a_row_has_the_tokens_that_the_product_sends(drawn: list[Transcript]) -> None:
    renderer = Renderer(known(), "reader", frozenset())
    for transcript in drawn[:60]:
        text = "".join(piece for piece, _ in transcript.parts)
        asked = FORM.prompt(DEFAULT_PROMPTS, transcript.question, (), (), ())
        prompt = asked.model_copy(update={"prefix": text})
        row = search_agent.row(known(), transcript)
        assert row.ids[:-1] == renderer.prompt_ids(prompt)
        assert row.ids[-1] == known().eos_token_id


def test_what_it_writes_is_read_by_the_workflow(drawn: list[Transcript]) -> None:
    searches = answers = 0
    for transcript in drawn:
        text = ""
        for piece, counts in transcript.parts:
            if counts:
                text += piece
                continue
            if not piece.startswith(FORM.documents[0]):
                continue  # the answer's tag, which the product writes
            turn = FORM.read(text)
            assert turn.text == text
            assert turn.query
            searches, text = searches + 1, ""
        if tags.ANSWER[0] in text:
            assert FORM.read(text).answer
            answers += 1
    assert searches > 150
    assert answers > 100


def test_only_what_the_reader_writes_counts(drawn: list[Transcript]) -> None:
    """Otherwise it would learn to make passages up."""
    for transcript in drawn[:60]:
        row = search_agent.row(known(), transcript)
        counted = [token for token, own in zip(row.ids, row.own, strict=True) if own]
        written = "".join(piece for piece, counts in transcript.parts if counts)
        assert known().decode(counted, skip_special_tokens=True).split() == written.split()
        assert "<information>" not in written


def test_it_trains_and_writes_a_reader(tmp_path: Path) -> None:
    search_agent.train(SMALL, tmp_path, minutes=0.01, seed=1)
    before = LlamaForCausalLM.from_pretrained(str(SMALL), dtype=torch.float32)
    after = LlamaForCausalLM.from_pretrained(str(tmp_path), dtype=torch.float32)
    assert len(after.model.layers) == len(before.model.layers)
    one, other = (m.model.layers[0].self_attn.q_proj.weight for m in (before, after))
    assert not torch.equal(one, other)
    assert hf.build(model=str(tmp_path), dtype="float32").name
    assert (tmp_path / "model.safetensors").stat().st_size < 5_000_000
