"""The transformers reader against the model itself, fed one unpadded sequence at a time."""

import logging
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import scipy.special
import scipy.stats
import torch
from pydantic import ByteSize

from hopscope.runtime.errors import ContextOverflowError, ReaderError
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Message,
    Passage,
    Prompt,
    Scored,
    ScoreRequest,
    Usage,
)
from tests import models

EVIDENCE = [
    Passage(title="Alba", text="Alba is a film directed by Bruno Costa."),
    Passage(title="Bruno Costa", text="Bruno Costa was born in Lisbon in 1951."),
]
PROMPTS = [
    prompts.short_answer("Where was the director of Alba born?", EVIDENCE),
    prompts.short_answer("Who?"),
    prompts.chain_of_thought("Who directed Alba?", EVIDENCE[:1], ["Alba is a film."]),
    prompts.short_answer("When was Bruno Costa born?", EVIDENCE[1:]),
]
ARCHITECTURES = [models.tiny_llama, models.tiny_gpt2, models.tiny_mistral, models.tiny_qwen2]


@pytest.fixture(scope="module", params=ARCHITECTURES, ids=lambda make: make.__name__)
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = request.param(tmp_path_factory.mktemp("model") / request.param.__name__)
    return hf.build(model=str(folder), device="cpu")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = models.tiny_llama(tmp_path_factory.mktemp("model") / "llama")
    return hf.build(model=str(folder), device="cpu")


def sampled(prompt: Prompt, **options: Any) -> GenerationRequest:
    defaults = {"n": 3, "temperature": 1.0, "max_tokens": 12, "seed": 7}
    return GenerationRequest(prompt=prompt, **{**defaults, **options})


def raw_logits(reader: Any, ids: list[int]) -> torch.Tensor:
    """The model's own logits for one sequence: no padding, no cache, no reader."""
    with torch.inference_mode():
        logits: torch.Tensor = reader._decoder._model(torch.tensor([ids])).logits[0].double()
    return logits


def prompt_ids(reader: Any, prompt: Prompt) -> list[int]:
    ids: list[int] = reader._renderer.prompt_ids(prompt)
    return ids


@contextmanager
def forward_shapes(reader: Any) -> Iterator[list[tuple[int, int]]]:
    """Rows and positions of every forward pass made inside."""
    shapes: list[tuple[int, int]] = []

    def note(module: Any, arguments: Any, keywords: dict[str, Any]) -> None:
        rows, positions = keywords["input_ids"].shape
        shapes.append((rows, positions))

    handle = reader._decoder._model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield shapes
    finally:
        handle.remove()


def assert_same(one: Generation | Scored, other: Generation | Scored) -> None:
    assert one.token_ids == other.token_ids
    assert one.tokens == other.tokens
    assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
    assert one.entropies == pytest.approx(other.entropies, abs=1e-4)


@pytest.mark.parametrize("temperature", [0.0, 1.0, 0.7])
def test_a_batch_gives_what_single_requests_give(reader: Any, temperature: float) -> None:
    """Wrong padding, masks or position ids show here: the prompts differ much in length."""
    requests = [
        sampled(prompt, temperature=temperature, n=1 + i, max_tokens=5 + 4 * i)
        for i, prompt in enumerate(PROMPTS)
    ]
    together = reader.generate(requests)
    for request, generations in zip(requests, together, strict=True):
        assert len(generations) == request.n
        for one, other in zip(generations, reader.generate([request])[0], strict=True):
            assert_same(one, other)
            assert one.text == other.text


def test_a_scored_batch_gives_what_single_requests_give(reader: Any) -> None:
    texts = [" Lisbon, in the south.", "no", "", " Bruno Costa. So the answer is: Bruno Costa."]
    requests = [
        ScoreRequest(prompt=prompt, continuation=text)
        for prompt, text in zip(PROMPTS, texts, strict=True)
    ]
    for request, scored in zip(requests, reader.score(requests), strict=True):
        assert_same(scored, reader.score([request])[0])


@pytest.mark.parametrize("max_batch_tokens", [1, 150, 1000])
def test_the_batch_size_changes_nothing(reader: Any, max_batch_tokens: int) -> None:
    """Samples of one prompt that do not fit into a batch continue from copies of its cache."""
    requests = [sampled(prompt, n=4) for prompt in PROMPTS]
    expected = reader.generate(requests)
    small = hf.build(model=str(reader._tokenizer.name_or_path), max_batch_tokens=max_batch_tokens)
    for ours, theirs in zip(small.generate(requests), expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)


def test_cached_likelihoods_equal_a_full_forward_pass(reader: Any) -> None:
    """Every recorded number, recomputed by scipy from the logits of the whole sequence."""
    for prompt, generations in zip(
        PROMPTS, reader.generate([sampled(prompt) for prompt in PROMPTS]), strict=True
    ):
        ids = prompt_ids(reader, prompt)
        for generation in generations:
            logits = raw_logits(reader, [*ids, *generation.token_ids])[len(ids) - 1 :].numpy()
            logprobs = scipy.special.log_softmax(logits, axis=-1)
            for i, token in enumerate(generation.token_ids):
                assert generation.logprobs[i] == pytest.approx(logprobs[i, token], abs=1e-4)
                entropy = scipy.stats.entropy(scipy.special.softmax(logits[i]))
                assert generation.entropies[i] == pytest.approx(entropy, abs=1e-4)


def test_scoring_a_generation_gives_its_likelihoods_again(reader: Any) -> None:
    requests = [sampled(prompt) for prompt in PROMPTS]
    for request, generations in zip(requests, reader.generate(requests), strict=True):
        again = reader.score(
            [ScoreRequest(prompt=request.prompt, token_ids=g.token_ids) for g in generations]
        )
        for generation, scored in zip(generations, again, strict=True):
            assert_same(generation, scored)


def test_greedy_takes_the_likeliest_token(reader: Any) -> None:
    generation = reader.generate([GenerationRequest(prompt=PROMPTS[0], max_tokens=8)])[0][0]
    ids = prompt_ids(reader, PROMPTS[0])
    for token in generation.token_ids:
        assert token == int(raw_logits(reader, ids)[-1].argmax())
        ids.append(token)


def test_temperature_changes_the_draw_but_not_the_recorded_likelihood(llama: Any) -> None:
    hot, cold = (
        llama.generate([sampled(PROMPTS[0], temperature=t, n=20, max_tokens=1)])[0]
        for t in (2.0, 0.3)
    )
    recorded = {g.token_ids[0]: g.logprobs[0] for g in hot if g.token_ids}
    shared = [g for g in cold if g.token_ids and g.token_ids[0] in recorded]
    assert shared
    for generation in shared:
        assert generation.logprobs[0] == pytest.approx(recorded[generation.token_ids[0]], abs=1e-4)
    for generation in cold:
        assert generation.entropies == pytest.approx(hot[0].entropies, abs=1e-4)
    assert sum(g.logprobs[0] for g in cold) > sum(g.logprobs[0] for g in hot)


def test_the_seed_decides_the_samples(llama: Any) -> None:
    first, again, other = (
        llama.generate([sampled(PROMPTS[0], n=5, seed=seed)])[0] for seed in (1, 1, 2)
    )
    assert [g.token_ids for g in first] == [g.token_ids for g in again]
    assert all(g.token_ids != h.token_ids for g, h in zip(first, other, strict=True))
    assert len({g.token_ids for g in first}) == 5


def test_a_sample_does_not_depend_on_how_many_there_are_or_what_else_is_asked(llama: Any) -> None:
    few = llama.generate([sampled(PROMPTS[0], n=2)])[0]
    crowd = llama.generate([sampled(PROMPTS[2]), sampled(PROMPTS[0], n=9), sampled(PROMPTS[1])])[1]
    for one, other in zip(few, crowd, strict=False):
        assert_same(one, other)


def test_samples_follow_the_exact_probabilities(llama: Any) -> None:
    """Chi-square over the likeliest tokens at a temperature; a right sampler fails one seed in a
    thousand, and the seed is fixed."""
    draws, temperature = 4000, 0.8
    generations = llama.generate(
        [sampled(PROMPTS[0], n=draws, temperature=temperature, max_tokens=1, seed=3)]
    )[0]
    logits = raw_logits(llama, prompt_ids(llama, PROMPTS[0]))[-1].numpy()
    probabilities = scipy.special.softmax(logits / temperature)
    likeliest = [int(token) for token in probabilities.argsort()[::-1] if token != 1][:25]
    drawn = [g.token_ids[0] if g.token_ids else 1 for g in generations]
    observed = [drawn.count(token) for token in likeliest]
    expected = [draws * probabilities[token] for token in likeliest]
    observed.append(draws - sum(observed))
    expected.append(draws - sum(expected))
    assert scipy.stats.chisquare(observed, expected).pvalue > 0.001


def test_all_samples_of_a_prompt_share_one_prefill(llama: Any) -> None:
    """Two requests with one prompt, ten samples: the prompt's tokens go through the model once."""
    fresh = anew(llama)
    length = len(prompt_ids(fresh, PROMPTS[0]))
    with forward_shapes(fresh) as shapes:
        fresh.generate([sampled(PROMPTS[0], n=8), sampled(PROMPTS[0], n=2, seed=8)])
    assert shapes[0] == (1, length)
    assert [positions for _, positions in shapes[1:] if positions == 1] == [1] * 11
    close = [rows for rows, positions in shapes[1:] if positions > length]
    assert close == [1] * (len(shapes) - 12)  # each decided by a row alone


def test_samples_are_computed_once_as_long_as_they_are_the_same(llama: Any) -> None:
    """A row for each distinct beginning that somebody goes on from; finished ones leave."""
    with forward_shapes(llama) as shapes:
        generations = llama.generate([sampled(PROMPTS[0], n=30, temperature=0.5)])[0]
    drawn = [g.token_ids for g in generations]
    goes_on = [len(g.token_ids) + (g.finish_reason == "eos") for g in generations]
    rows = [
        len({ids[:step] for ids, length in zip(drawn, goes_on, strict=True) if length > step})
        for step in range(1, max(goes_on))
    ]
    assert [count for count, positions in shapes if positions == 1][-len(rows) :] == rows
    assert rows[0] < 30


def test_equal_requests_are_computed_once_in_however_many_batches(llama: Any) -> None:
    """Two equal ones in batches of their own were read twice, and rounded as each batch is."""
    name = str(llama._tokenizer.name_or_path)
    tight: Any = hf.build(model=name, max_batch_tokens=1, prefix_cache=ByteSize(0))
    once = ScoreRequest(prompt=PROMPTS[0], token_ids=(5, 6, 7))
    # The same to the model, though they are shown other passages.
    again = once.model_copy(update={"prompt": PROMPTS[0].model_copy(update={"shown": ("x",)})})
    with forward_shapes(tight) as shapes:
        found = tight.score([once, again, once])
    assert len(shapes) == 1
    assert found[0] == found[1] == found[2]
    with forward_shapes(tight) as shapes:
        one = tight.generate([sampled(PROMPTS[0], n=2, max_tokens=5)])[0]
    passes = len(shapes)
    with forward_shapes(tight) as shapes:
        assert tight.generate([sampled(PROMPTS[0], n=2, max_tokens=5)] * 3) == [one] * 3
    assert len(shapes) == passes


def anew(reader: Any) -> Any:
    """The same model, which has read nothing."""
    return hf.build(model=str(reader._tokenizer.name_or_path))


def test_usage_of_a_request_is_the_sum_over_its_samples(llama: Any) -> None:
    request = sampled(PROMPTS[0], n=4, max_tokens=6)
    generations = llama.generate([request])[0]
    ended = sum(g.finish_reason == "eos" for g in generations)
    assert sum((g.usage for g in generations), Usage()) == Usage(
        input_tokens=len(prompt_ids(llama, PROMPTS[0])),
        output_tokens=sum(len(g.token_ids) for g in generations) + ended,
        calls=1,
    )
    scored = llama.score([ScoreRequest(prompt=PROMPTS[0], token_ids=(5, 6, 7))])[0]
    assert scored.usage == Usage(input_tokens=len(prompt_ids(llama, PROMPTS[0])) + 3, calls=1)


def test_an_empty_continuation_has_empty_sequences_and_costs_nothing(llama: Any) -> None:
    with forward_shapes(llama) as shapes:
        scored = llama.score([ScoreRequest(prompt=PROMPTS[0])])[0]
    assert scored == Scored(tokens=(), token_ids=(), logprobs=(), entropies=())
    assert shapes == []
    assert llama.score([]) == []
    assert llama.generate([]) == []


def test_given_tokens_take_precedence_over_the_text(llama: Any) -> None:
    scored = llama.score([ScoreRequest(prompt=PROMPTS[0], continuation="x", token_ids=(40, 41))])
    assert scored[0].token_ids == (40, 41)


def test_the_prompt_and_its_output_must_fit_the_context(tmp_path: Path) -> None:
    reader: Any = hf.build(
        model=str(models.tiny_llama(tmp_path / "short", max_position_embeddings=64))
    )
    length = len(prompt_ids(reader, PROMPTS[1]))
    exact = GenerationRequest(prompt=PROMPTS[1], max_tokens=64 - length)
    assert reader.generate([exact])[0][0].usage.output_tokens <= 64 - length
    with pytest.raises(
        ContextOverflowError,
        match=rf"{length} tokens and {65 - length} more .* short@\w+, 64 tokens",
    ) as caught:
        reader.generate([exact.model_copy(update={"max_tokens": 65 - length})])
    assert (caught.value.tokens, caught.value.allowed) == (length, length - 1)
    with pytest.raises(ContextOverflowError):
        reader.score([ScoreRequest(prompt=PROMPTS[1], token_ids=(5,) * (65 - length))])


def test_a_prompt_far_beyond_the_context_is_refused_without_its_tokens(
    llama: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a passage of 10 MB took 2 GB and most of a minute."""
    renderer = llama._renderer
    words = "Alba is a film by Bruno Costa. "
    for text in (words * 40, words * 4000, " " * 400_000, "\n\t" * 300_000, "Alba" + " " * 99_999):
        prompt = Prompt(messages=(Message(role="user", content=text),))
        told = renderer.fewest(prompt, llama._context)
        assert told <= len(renderer.prompt_ids(prompt)) or told <= llama._context
    monkeypatch.setattr(renderer, "_tokenizer", None)
    long = Prompt(messages=(Message(role="user", content=words * 300_000),))
    for ask in (
        lambda: llama.generate([GenerationRequest(prompt=long)]),
        lambda: llama.score([ScoreRequest(prompt=long, continuation="x")]),
    ):
        with pytest.raises(ContextOverflowError, match=r"a prompt of at least \d+ tokens"):
            ask()


def test_of_a_prompt_that_is_too_long_only_the_reader_tells(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """transformers would warn of indexing errors, which the refusal prevents."""
    reader: Any = hf.build(model=str(models.tiny_llama(tmp_path / "model")))
    reader._tokenizer.model_max_length = 8
    told = logging.getLogger("transformers")
    told.addHandler(caplog.handler)
    try:
        assert len(prompt_ids(reader, PROMPTS[1])) > 8
    finally:
        told.removeHandler(caplog.handler)
    assert not caplog.records


def test_a_token_the_model_does_not_have_is_refused(llama: Any) -> None:
    with pytest.raises(ReaderError, match="token 320 is not among the model's 320"):
        llama.score([ScoreRequest(prompt=PROMPTS[0], token_ids=(320,))])


def test_an_overflowing_model_fails_instead_of_recording_nonsense(tmp_path: Path) -> None:
    reader: Any = hf.build(model=str(models.tiny_llama(tmp_path / "broken")))
    reader._decoder._model.lm_head.weight.data.fill_(math.nan)
    with pytest.raises(ReaderError, match="not finite"):
        reader.generate([sampled(PROMPTS[0])])


def test_threads_share_a_reader(llama: Any) -> None:
    requests = [sampled(prompt) for prompt in PROMPTS]
    expected = [llama.generate([request])[0] for request in requests]
    found: dict[int, list[Generation]] = {}

    def work(i: int) -> Callable[[], None]:
        return lambda: found.update({i: llama.generate([requests[i]])[0]})

    threads = [threading.Thread(target=work(i)) for i in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, generations in found.items():
        for one, other in zip(generations, expected[i], strict=True):
            assert_same(one, other)


def test_global_random_state_is_left_alone(llama: Any) -> None:
    before = torch.random.get_rng_state()
    llama.generate([sampled(PROMPTS[0])])
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.is_grad_enabled()
