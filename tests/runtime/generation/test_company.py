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


class At(sampling.Chance):
    """A chance whose uniform number is the step."""

    @property
    def uniform(self) -> float:
        return float(self.step)


def at(*uniforms: float) -> list[sampling.Chance]:
    return [At(b"", number) for number in uniforms]


def test_a_close_call_is_told() -> None:
    """Tokens of .5, .3 and .2. The first bound moves by half of what they move together, the second
    by .2 of what the first two and .8 of what the third."""
    logprobs = torch.tensor([[0.5, 0.3, 0.2]]).log().repeat(7, 1)
    logprobs[6, 1] = logprobs[6, 0] - sampling.ROUNDING
    first = sampling.TYPICAL_ROUNDING * 0.5 * 0.38**0.5
    second = sampling.TYPICAL_ROUNDING * (0.2**2 * 0.34 + 0.8**2 * 0.04) ** 0.5
    chances = at(0.5 + 0.9 * first, 0.5 + 1.1 * first, 0.8 - 0.9 * second, 0.8 - 1.1 * second)
    chances += at(1 - 1e-9, 0.5, 0.5)
    temperatures = [1.0] * 5 + [0.0] * 2
    assert draw(logprobs, temperatures, chances).tolist() == [1, 1, 1, 1, 2, 0, 0]
    assert sorted(close_calls(logprobs, temperatures, chances)) == [0, 2, 6]
    assert close_calls(logprobs[:1], [1.0], at(1e-9)) == []  # nothing is below it
    assert close_calls(logprobs[:, :1], [0.0] * 7, chances) == []


def test_cold_samples_are_close_like_others() -> None:
    """At half the temperature rounding moves a bound twice as much. Far below no draw is close, but
    of equal tokens."""
    logprobs = 0.5 * torch.tensor([[0.5, 0.3, 0.2]]).log()
    first = 2 * sampling.TYPICAL_ROUNDING * 0.5 * 0.38**0.5
    for factor in (0.9, 1.1):
        assert close_calls(logprobs, [0.5], at(0.5 + factor * first)) == [0] * (factor < 1)
    assert close_calls(torch.tensor([[0.0, -20.0]]), [1e-5], at(0.5)) == []
    assert close_calls(torch.zeros(1, 2000), [2e-7], at(0.5)) == [0]


RARE = sampling.RARE
"""Rare tokens are 1, 2, 4 and, just so, 6; 5 is just not."""
SHARES = [0.5, RARE / 4, RARE / 2, 0.3, RARE / 2, RARE * (1 + 1e-6), RARE * (1 - 1e-6)]
FAR = [9.0] * 8
"""Lots of tokens that come in late."""


def but(**lots: float) -> list[float]:
    return [lots.get(f"of_{token}", late) for token, late in enumerate(FAR)]


@pytest.mark.parametrize(
    ("uniform", "lots", "drawn", "close"),
    [
        (0.5 + 0.6 * RARE, but(of_0=0.1, of_3=0.1, of_4=0.5), 4, False),  # met 2, but 4 is first
        (0.5 + 0.25 * RARE, but(of_2=0.5), 2, False),  # on the bound of two rare ones
        (0.5 + 0.6 * RARE, but(of_2=0.5, of_4=0.49999), 4, True),  # nearly at the same time
        (0.5 + 0.6 * RARE, but(of_2=0.5, of_4=0.49985), 4, None),  # so at half the temperature
        (0.5 + 1e-9, but(of_2=0.5), 2, True),  # at the bound behind a common one
        (0.5 + 0.75 * RARE - 1e-9, but(of_2=0.5), 2, True),  # at the bound before a common one
        (0.5 + 0.6 * RARE, but(of_6=0.1), 6, True),  # the winner may be common
        (0.5 + 0.6 * RARE, but(of_5=0.1), 6, True),  # one that may be rare would win
        (0.8 + 1.25 * RARE + 1e-9, but(of_2=0.5), 5, True),  # met one that may be rare
        (0.8 + 1.25 * RARE - 1e-9, but(of_2=0.5), 2, True),  # at its bound
    ],
)
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_rare_tokens_draw_lots(
    uniform: float,
    lots: list[float],
    drawn: int,
    close: bool | None,
    temperature: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(At, "lots", lambda *_: torch.tensor(lots).double())
    shares = torch.tensor([*SHARES, 1 - sum(SHARES)], dtype=torch.float64)
    logprobs, chances = temperature * shares.log()[None], at(uniform)
    assert draw(logprobs, [temperature], chances).tolist() == [drawn]
    told = close_calls(logprobs, [temperature], chances)
    assert bool(told) == (temperature < 1 if close is None else close)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_every_token_is_drawn_by_its_probability(temperature: float) -> None:
    """Rare ones, too."""
    logits = temperature * torch.tensor([3.0, 0, *[-4.5] * 40, *[-5.5] * 40])
    logprobs = (logits - logits.logsumexp(0))[None]
    count = 100_000
    chances = [sampling.Chance(b"stream", step) for step in range(count)]
    drawn = draw(logprobs.expand(count, -1), [temperature] * count, chances)
    shares = (logprobs[0] / temperature).softmax(dim=-1)
    assert int((shares < sampling.RARE).sum()) == 80
    for tokens in (slice(0, 1), slice(1, 2), slice(2, 42), slice(42, 82)):
        wanted = float(shares[tokens].sum())
        found = sum(int((drawn == token).sum()) for token in range(82)[tokens]) / count
        assert abs(found - wanted) < 4.2 * (wanted * (1 - wanted) / count) ** 0.5


def test_of_a_large_vocabulary_few_draws_are_close() -> None:
    """One of 40 was, and a close one reads its whole prompt again: its bounds lie nearer to each
    other than rounding moves them."""
    generator = torch.Generator().manual_seed(0)
    close = 0
    for part in range(8):
        logits = 2.5 * torch.randn(250, 32_000, generator=generator)
        chances = [sampling.Chance(b"stream", 250 * part + place) for place in range(250)]
        close += len(close_calls(torch.log_softmax(logits, dim=-1), [1.0] * 250, chances))
    assert close <= 3


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
