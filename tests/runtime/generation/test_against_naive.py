"""Calls that come and go, in any memory, get what a reader without batches and caches gives.

That reader is here: for each token it computes the whole sequence anew.
"""

import random
from functools import lru_cache
from typing import Any, NamedTuple

import pytest
import torch

from hopscope.runtime.corpora import hopland
from hopscope.runtime.errors import ContextOverflowError
from hopscope.runtime.generation import rows
from hopscope.runtime.generation.caches.roomy import RoomyCache
from hopscope.runtime.generation.sampling import Chance, distribution, draw, stream_key
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import tiny
from hopscope.runtime.types import Generation, GenerationRequest, ScoreRequest

PASSAGES = list(hopland.corpus())[:40]
CONTEXT = 2048


class Sample(NamedTuple):
    ids: tuple[int, ...]
    logprobs: list[float]
    entropies: list[float]
    end_logprob: float | None


@pytest.fixture(scope="module")
def naive() -> Any:
    return Naive()


class Naive:
    def __init__(self) -> None:
        self.reader: Any = tiny.build(prefix_cache=0)
        self.after = lru_cache(maxsize=None)(self._after)

    def sample(self, request: GenerationRequest, index: int) -> Sample:
        prompt = self.reader.prompt_ids(request)
        stream = stream_key(request.seed, prompt, index)
        sample = Sample((), [], [], None)
        for step in range(request.max_tokens):
            logprobs, entropies = distribution(self.after((*prompt, *sample.ids))[None])
            token = int(draw(logprobs, [request.temperature], [Chance(stream, step)])[0])
            if token in self.reader._end_ids:
                return sample._replace(end_logprob=float(logprobs[0, token]))
            sample.logprobs.append(float(logprobs[0, token]))
            sample.entropies.append(float(entropies[0]))
            sample = sample._replace(ids=(*sample.ids, token))
        return sample

    def _after(self, ids: tuple[int, ...]) -> torch.Tensor:
        tokens = torch.tensor([ids])
        with torch.inference_mode():
            logits: torch.Tensor = self.reader._decoder._model(
                input_ids=tokens,
                attention_mask=torch.ones_like(tokens),
                past_key_values=RoomyCache(),
                logits_to_keep=1,
                use_cache=True,
            ).logits
        return logits[0, -1]

    def assert_same(
        self, request: GenerationRequest, replies: list[Generation], first: int
    ) -> None:
        assert len(replies) == request.n
        for index, reply in enumerate(replies, first):
            expected = self.sample(request, index)
            assert reply.token_ids == expected.ids
            assert reply.logprobs == pytest.approx(expected.logprobs, abs=1e-4)
            assert reply.entropies == pytest.approx(expected.entropies, abs=1e-3)
            assert reply.end_logprob == pytest.approx(expected.end_logprob, abs=1e-4)


def some(dice: random.Random) -> GenerationRequest:
    """From 20 to 400 tokens of prompt, few or many samples, short or long ones."""
    names = [each.title for each in PASSAGES[:2]]
    question = dice.choice(["Who?", *(f"Where was the director of {n} born?" for n in names)])
    return GenerationRequest(
        prompt=prompts.short_answer(
            question, dice.sample(PASSAGES[:10], dice.choice([0, 0, 1, 3, 8]))
        ),
        n=dice.choice([1, 1, 2, 20]),
        temperature=dice.choice([0.0, 1.0, 3.0]),
        max_tokens=dice.choice([1, 2, 8, 40]),
        seed=dice.randrange(2),
    )


@pytest.mark.parametrize(
    ("area", "prefixes", "ahead"),
    [
        (1, 256_000_000, 4),
        (200, 3_000_000, 1),
        (700, 300_000, 4),
        (3000, 256_000_000, 32),
        (16_384, 0, 32),
    ],
)
def test_whoever_comes_and_goes(
    naive: Any, monkeypatch: pytest.MonkeyPatch, area: int, prefixes: int, ahead: int
) -> None:
    """Wrong places, masks, positions or streams show, and memory beyond its bounds."""
    dice = random.Random(area)
    monkeypatch.setattr(rows, "AHEAD", ahead)
    reader: Any = tiny.build(max_batch_tokens=area, prefix_cache=prefixes)
    calls = [([some(dice) for _ in range(dice.choice([1, 3]))], dice.choice([0, 0, 2]))
             for _ in range(5)]  # fmt: skip
    ongoing = reader.ongoing()
    numbers: dict[int, int] = {}
    while ongoing.busy or len(numbers) < len(calls):
        if len(numbers) < len(calls) and dice.random() < 0.5:
            requests, first = calls[len(numbers)]
            numbers[ongoing.join(requests, first=first)] = len(numbers)
        if dice.random() < 0.1:
            reader.score([ScoreRequest(prompt=some(dice).prompt, token_ids=(40, 41, 42))])
        for number, replies in ongoing.advance().items():
            requests, first = calls[numbers[number]]
            for request, samples in zip(requests, replies, strict=True):
                naive.assert_same(request, samples, first)
        assert positions(ongoing) <= area or len(ongoing._running._held.rows) == 1
        assert reader._decoder._prefill.tree.size <= prefixes


@pytest.mark.parametrize(
    ("left", "options"), [(1, {}), (2, {"prefix_cache": 0}), (3, {"max_batch_tokens": 1})]
)
def test_a_prompt_may_end_where_the_context_does(naive: Any, left: int, options: Any) -> None:
    """Beside another, in little memory and without prefixes."""
    reader: Any = tiny.build(**options)
    short = asking("Who?", max_tokens=20)
    missing = CONTEXT - left - len(reader.prompt_ids(short))
    long = asking("Who?" + " word" * missing, n=2, temperature=2.5, max_tokens=left)
    assert len(reader.prompt_ids(long)) == CONTEXT - left
    ongoing = reader.ongoing()
    ongoing.join([short])
    ongoing.advance()
    number = ongoing.join([long])
    found: dict[int, list[list[Generation]]] = {}
    while ongoing.busy:
        found |= ongoing.advance()
    naive.assert_same(long, found[number][0], 0)
    with pytest.raises(ContextOverflowError):
        ongoing.join([long.model_copy(update={"max_tokens": left + 1})])


def test_what_was_read_waits_while_others_grow(naive: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for four tokens of each reply is not enough for forty."""
    monkeypatch.setattr(rows, "AHEAD", 4)
    requests = [asking("Who?", n=30, temperature=3.0, max_tokens=40, seed=i) for i in range(2)]
    length = len(naive.reader.prompt_ids(requests[0]))
    area = 2 * 2 * length + 60 * 4
    ongoing: Any = tiny.build(max_batch_tokens=area).ongoing()
    numbers = [ongoing.join([request]) for request in requests]
    found: dict[int, list[list[Generation]]] = {}
    waited = 0
    while ongoing.busy:
        found |= ongoing.advance()
        assert positions(ongoing) <= area
        waited = max(waited, len(ongoing._running._waiting))
    assert waited > 10
    for number, request in zip(numbers, requests, strict=True):
        naive.assert_same(request, found[number][0], 0)


def asking(question: str, **fields: Any) -> GenerationRequest:
    return GenerationRequest(prompt=prompts.short_answer(question), **fields)


def positions(ongoing: Any) -> int:
    """That the keys and values of running rows have memory for."""
    held = ongoing._running._held
    return sum(int(each._cache.columns) for each in held._sequences)
