"""The ways in which a begun reply can go on, against the model fed one whole sequence at a time;
and samples drawn in several goes."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from hopscope.runtime.errors import ContextOverflowError, ReaderError
from hopscope.runtime.ports import Branch, BranchRequest
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf
from hopscope.runtime.types import GenerationRequest, Passage
from tests import models

EVIDENCE = [Passage(title="Alba", text="Alba is a film directed by Bruno Costa.")]
PROMPTS = [
    prompts.short_answer("Where was the director of Alba born?", EVIDENCE),
    prompts.short_answer("Who?"),
]
ARCHITECTURES = [models.tiny_llama, models.tiny_gpt2, models.tiny_mistral, models.tiny_qwen2]
BEGUN = [(), (40,), (41, 42, 43), (44,), (45, 46, 47), (48,) * 10]


@pytest.fixture(scope="module", params=ARCHITECTURES, ids=lambda make: make.__name__)
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = request.param(tmp_path_factory.mktemp("model") / request.param.__name__)
    return hf.build(model=str(folder), device="cpu")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = models.tiny_llama(tmp_path_factory.mktemp("model") / "llama")
    return hf.build(model=str(folder), device="cpu")


def asked(prompt: int, begun: tuple[int, ...] = (), **fields: Any) -> BranchRequest:
    request = GenerationRequest(prompt=PROMPTS[prompt], max_tokens=12, stop=("\n",))
    return BranchRequest(request.model_copy(update=fields), begun)


def raw(reader: Any, ids: list[int]) -> torch.Tensor:
    """The model's own distribution after one sequence: no padding, no cache, no reader."""
    with torch.inference_mode():
        logits = reader._decoder._model(torch.tensor([ids])).logits[0, -1].double()
        return torch.log_softmax(logits, dim=-1)


@pytest.mark.parametrize("max_batch_tokens", [1, 16_384])
def test_branches_have_the_models_own_probabilities(reader: Any, max_batch_tokens: int) -> None:
    """Beginnings of several lengths and two prompts at once: a wrong position, mask or a cache
    that one call leaves dirty shows here."""
    small = hf.build(model=reader._tokenizer.name_or_path, max_batch_tokens=max_batch_tokens)
    requests = [asked(prompt, begun) for begun in BEGUN for prompt in (0, 1)]
    for _ in range(2):
        for request, branches in zip(requests, small.branch(requests), strict=True):  # type: ignore[attr-defined]
            ids = reader._renderer.prompt_ids(request.request.prompt)
            expected = raw(reader, [*ids, *request.token_ids])
            assert [b.logprob for b in branches] == sorted(b.logprob for b in branches)[::-1]
            assert math.fsum(math.exp(b.logprob) for b in branches) == pytest.approx(1, abs=1e-12)
            found = torch.empty(320, dtype=torch.float64)
            found[[b.token_id for b in branches]] = torch.tensor(
                [b.logprob for b in branches], dtype=torch.float64
            )
            assert torch.allclose(found, expected, atol=1e-4)


def test_one_prompt_is_computed_once_for_a_whole_search(llama: Any) -> None:
    widths: list[int] = []
    handle = llama._decoder._model.register_forward_pre_hook(
        lambda module, arguments, keywords: widths.append(keywords["input_ids"].shape[1]),
        with_kwargs=True,
    )
    try:
        for begun in [(), (40,), (40, 41)]:
            llama.branch([asked(0, begun)])
    finally:
        handle.remove()
    assert widths[1:] == [1, 2]
    assert widths[0] in (0, len(llama._renderer.prompt_ids(PROMPTS[0])))


def test_a_branch_ends_where_a_sample_would(llama: Any) -> None:
    """Every sampled reply is a path of open branches to one that ends with the same text. The
    token that wrote the stop string is not in the record, so any that ends there will do."""
    request = asked(0, stop=("e", "\n"), max_tokens=5).request
    samples = llama.generate([request.model_copy(update={"n": 16, "temperature": 1.0})])[0]
    assert {s.finish_reason for s in samples} >= {"stop", "length"}
    for sample in samples:
        begun: tuple[int, ...] = ()
        for token in sample.token_ids:
            branch = branches(llama, BranchRequest(request, begun))[token]
            if branch.text is not None:
                break
            begun += (token,)
        ends = [branch.text for branch in branches(llama, BranchRequest(request, begun)).values()]
        assert sample.text in ends
        assert begun in (sample.token_ids, sample.token_ids[:-1])


def test_the_end_token_ends_and_what_is_unlikely_is_left_out(llama: Any) -> None:
    all_of_them = branches(llama, asked(0, (40,)))
    [text] = [b.text for token, b in all_of_them.items() if token == 1]
    assert text == llama._tokenizer.decode([40])
    [some] = llama.branch([asked(0, (40,))._replace(least=0.01)])
    assert {b.token_id for b in some} == {
        token for token, b in all_of_them.items() if math.exp(b.logprob) >= 0.01
    }
    assert 0 < len(some) < len(all_of_them)
    assert all(b.text is not None for b in branches(llama, asked(0, (40,), max_tokens=2)).values())


def branches(reader: Any, request: BranchRequest) -> dict[int, Branch]:
    [found] = reader.branch([request])
    return {branch.token_id: branch for branch in found}


def test_what_cannot_go_on_or_does_not_fit_is_refused(llama: Any) -> None:
    with pytest.raises(ReaderError, match="has ended"):
        llama.branch([asked(0, (40, 41), max_tokens=2)])
    with pytest.raises(ReaderError, match="has ended"):
        llama.branch([asked(0, (40, 1))])
    with pytest.raises(ContextOverflowError):
        llama.branch([asked(0, max_tokens=1000)])
    assert llama.branch([]) == []


def test_an_overflowing_model_fails_instead_of_being_enumerated(tmp_path: Path) -> None:
    reader: Any = hf.build(model=str(models.tiny_llama(tmp_path / "broken")))
    reader._decoder._model.lm_head.weight.data.fill_(math.nan)
    with pytest.raises(ReaderError, match="not finite"):
        reader.branch([asked(0)])


def test_samples_drawn_in_two_goes_are_those_drawn_in_one(llama: Any) -> None:
    request = GenerationRequest(prompt=PROMPTS[0], n=5, temperature=1.0, max_tokens=6, seed=3)
    [whole] = llama.generate([request])
    [head] = llama.generate([request.model_copy(update={"n": 2})])
    [tail] = llama.more([request.model_copy(update={"n": 3})], first=2)
    assert [s.token_ids for s in [*head, *tail]] == [s.token_ids for s in whole]
    assert len({s.token_ids for s in whole}) == 5
    prompt = len(llama._renderer.prompt_ids(PROMPTS[0]))
    assert [s.usage.input_tokens for s in tail] == [prompt, 0, 0]
