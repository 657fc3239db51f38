"""Who is computed together with a sample changes no token of it, though it changes rounding."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from hopscope.api import parts
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.generation import sampling
from hopscope.runtime.generation.forwarding import Forwarder
from hopscope.runtime.generation.sampling import close_calls, draw
from hopscope.runtime.models.parts import Part
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf, tiny
from hopscope.runtime.types import Generation, GenerationRequest
from hopscope.runtime.wrappers.scheduled_reader import ScheduledReader
from tests import models

REQUESTS = [
    GenerationRequest(
        prompt=prompts.short_answer(f"Who made Alba {number}?"),
        n=n,
        temperature=temperature,
        max_tokens=12,
        seed=number,
    )
    for number in range(4)
    for n, temperature in ((1, 0.0), (3, 1.0), (2, 0.5))
]


@pytest.fixture(scope="module", params=["hf", "tiny"])
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    if request.param == "tiny":
        return tiny.build()
    return hf.build(model=str(models.tiny_llama(tmp_path_factory.mktemp("model") / "llama")))


def tokens(replies: Sequence[Sequence[Generation]]) -> list[list[tuple[int, ...]]]:
    return [[each.token_ids for each in samples] for samples in replies]


def disturb(monkeypatch: pytest.MonkeyPatch, noise: float) -> None:
    """Rounding as of a very coarse computation, of all but a row that is read alone and whole."""
    together, generator = Forwarder.together, torch.Generator().manual_seed(0)

    def noisy(self: Forwarder, parts: Sequence[Part], **options: int) -> list[torch.Tensor]:
        whole = len(parts) == len(parts[0].ids) == 1 and parts[0].cache.tokens == 0
        every = together(self, parts, **options)
        if whole:
            return every
        return [one + noise * (2 * torch.rand(one.shape, generator=generator) - 1) for one in every]

    monkeypatch.setattr(Forwarder, "together", noisy)


def test_rounding_decides_no_token(reader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ROUNDING", 0.02)
    monkeypatch.setattr(sampling, "TYPICAL_ROUNDING", 0.04)
    alone = [reader.generate([request])[0] for request in REQUESTS]
    disturb(monkeypatch, noise=0.01)
    assert tokens(reader.generate(REQUESTS)) == tokens(alone)
    monkeypatch.setattr(sampling, "ROUNDING", 0.0)
    monkeypatch.setattr(sampling, "TYPICAL_ROUNDING", 0.0)
    assert tokens(reader.generate(REQUESTS)) != tokens(alone)


def test_in_half_precision_nothing_is_computed_again(tmp_path: Any) -> None:
    reader: Any = hf.build(model=str(models.tiny_llama(tmp_path / "llama")), dtype="bfloat16")
    assert reader._decoder.running()._alone is None


def test_a_close_call_is_told() -> None:
    """Tokens of .5, .3 and .2; a bound moves by TYPICAL_ROUNDING * sqrt(.38)."""
    logprobs = torch.tensor([[0.5, 0.3, 0.2]]).log().repeat(6, 1)
    logprobs[5, 1] = logprobs[5, 0] - sampling.ROUNDING
    moved = sampling.TYPICAL_ROUNDING * 0.38**0.5
    uniforms = [0.5 + 0.9 * moved, 0.5 + 1.1 * moved, 0.8 - 0.9 * moved, 1 - 1e-9, 0.5, 0.5]
    temperatures = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    drawn = draw(logprobs, temperatures, uniforms)
    assert drawn.tolist() == [1, 1, 1, 2, 0, 0]
    assert sorted(close_calls(logprobs, temperatures, uniforms, drawn)) == [0, 2, 5]
    first = draw(logprobs[:1], [1.0], [1e-9])
    assert close_calls(logprobs[:1], [1.0], [1e-9], first) == []  # nothing is below it
    assert close_calls(logprobs[:, :1], [0.0] * 6, uniforms, torch.zeros(6).long()) == []


@pytest.mark.parametrize(
    "questions", [4, pytest.param(50, marks=pytest.mark.slow)], ids=["four", "fifty"]
)
@pytest.mark.parametrize("workflow", ["naive", "ircot"])
def test_answers_do_not_depend_on_the_questions_at_the_same_time(
    workflow: str, questions: int
) -> None:
    one, sixteen = (replies(workflow, questions, threads) for threads in (1, 16))
    for ours, theirs in zip(one, sixteen, strict=True):
        assert [each.text for each in ours] == [each.text for each in theirs]
        for a, b in zip(ours, theirs, strict=True):
            assert a.token_ids == b.token_ids
            assert a.logprobs == pytest.approx(b.logprobs, abs=1e-5, rel=0)


def replies(workflow: str, questions: int, threads: int) -> list[list[Generation]]:
    """All replies of each run."""
    asked = [item.question for item in hopland.questions("dev")][:questions]
    built = parts.workflow(workflow, {})
    with (
        ScheduledReader(parts.reader("tiny"), callers=threads) as reader,
        ThreadPoolExecutor(threads) as pool,
    ):
        deps = Deps(
            reader=reader,
            retriever=parts.corpus("hopland"),
            entailment=parts.entailment("lexical"),
            seed=0,
        )
        runs = pool.map(lambda question: run(built, question, deps), asked)
        return [
            [g for step in each.steps for e in step.exchanges for g in e.generations]
            for each in runs
        ]
