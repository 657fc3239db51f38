"""Calls that join a running one and leave it when they end get what each gets alone."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest

from hopscope.runtime.errors import ContextOverflowError
from hopscope.runtime.generation import rows
from hopscope.runtime.ports import ContinuousReader
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf, tiny
from hopscope.runtime.types import Generation, GenerationRequest, Passage
from hopscope.runtime.wrappers.kept_reader import KeptReader
from tests import models

SHAPES = {"llama": models.tiny_llama, "gpt2": models.tiny_gpt2, "mistral": models.tiny_mistral}
EVIDENCE = tuple(
    Passage(title=f"Alba {i}", text=f"Alba {i} is a film directed by Bruno Costa in {1950 + i}.")
    for i in range(4)
)

Replies = list[list[Generation]]


@pytest.fixture(scope="module", params=["tiny", *SHAPES])
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    if request.param == "tiny":
        return tiny.build()
    folder = str(SHAPES[request.param](tmp_path_factory.mktemp("model") / request.param))
    return hf.build(model=folder)


def request(number: int, n: int = 1, max_tokens: int = 8) -> GenerationRequest:
    """The first prompts are short, the later ones long."""
    prompt = prompts.short_answer(f"Who made Alba {number}?", EVIDENCE[: number % 5])
    return GenerationRequest(
        prompt=prompt, n=n, temperature=1.0 if n > 1 else 0.0, max_tokens=max_tokens, seed=number
    )


CALLS = [
    [request(1, max_tokens=24)],
    [request(2), request(4, n=4), request(4, n=4)],
    [request(3, n=6)],
    [request(9, n=2, max_tokens=30)],
    [request(0), request(4)],
]


def staggered(reader: Any, calls: Sequence[list[GenerationRequest]], every: int) -> list[Replies]:
    """The replies to calls of which one joins every so many passes."""
    assert isinstance(reader, ContinuousReader)
    ongoing = reader.ongoing()
    numbers: dict[int, int] = {}
    found: dict[int, Replies] = {}
    passes = 0
    while ongoing.busy or len(numbers) < len(calls):
        if passes % every == 0 and len(numbers) < len(calls):
            numbers[ongoing.join(calls[len(numbers)])] = len(numbers)
        found.update({numbers[call]: replies for call, replies in ongoing.advance().items()})
        passes += 1
    return [found[place] for place in range(len(calls))]


def assert_same(ours: list[Replies], theirs: list[Replies]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert [[g.token_ids for g in each] for each in one] == [
            [g.token_ids for g in each] for each in other
        ]
        for a, b in zip(chain(*one), chain(*other), strict=True):
            assert a.logprobs == pytest.approx(b.logprobs, abs=1e-4)
            assert (a.text, a.usage) == (b.text, b.usage)


@pytest.mark.parametrize("every", [1, 3])
def test_who_joins_gets_what_it_gets_alone(reader: Any, every: int) -> None:
    """Wrong places, padding or masks of rows that come or go show here."""
    alone = [reader.generate(call) for call in CALLS]
    assert_same(staggered(reader, CALLS, every), alone)


def test_the_embedded_reader_reads_prompts_in_the_pass_that_draws() -> None:
    """After the first one, a call that joins costs no pass."""
    shared: Any = tiny.build()
    ongoing = shared.ongoing()
    for place, call in enumerate(([request(1, max_tokens=24)], [request(4, max_tokens=24)])):
        ongoing.join(call)
        before = shared.forwarded.passes
        ongoing.advance()
        assert shared.forwarded.passes - before == 2 - place


@pytest.mark.parametrize("options", [{"max_batch_tokens": 200}, {"prefix_cache": 0}])
def test_little_memory_changes_nothing(options: dict[str, int]) -> None:
    alone = [tiny.build().generate(call) for call in CALLS]
    small: Any = {"prefix_cache": hf.PREFIX_CACHE, **options}
    assert_same(staggered(tiny.build(**small), CALLS, 1), alone)


def test_replies_beyond_what_was_kept_for_them_make_the_rest_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = [tiny.build().generate(call) for call in CALLS]
    monkeypatch.setattr(rows, "AHEAD", 1)
    assert_same(staggered(tiny.build(max_batch_tokens=700), CALLS, 1), alone)


def test_a_row_that_ends_makes_room_for_one_that_waits(tmp_path: Any) -> None:
    """Sixteen replies of four or forty tokens, four at a time: as batches, each would last as long
    as its longest reply."""
    reader: Any = hf.build(model=str(models.tiny_llama(tmp_path / "llama")))
    calls = [[request(i, max_tokens=40 if i % 4 == 0 else 4)] for i in range(16)]
    lengths = [_tokens(reader, call) for call in calls]
    batches = sum(max(lengths[at : at + 4]) for at in range(0, 16, 4))
    ongoing = reader.ongoing()
    before, waiting = reader.forwarded.passes, calls[:]
    while ongoing.busy or waiting:
        while waiting and ongoing.busy < 4:
            ongoing.join(waiting.pop(0))
        ongoing.advance()
    assert reader.forwarded.passes - before < 0.7 * batches


def _tokens(reader: Any, call: list[GenerationRequest]) -> int:
    [[reply]] = reader.generate(call)
    return len(reply.token_ids)


def test_a_call_that_cannot_be_answered_leaves_the_others_alone() -> None:
    reader: Any = tiny.build()
    ongoing = reader.ongoing()
    number = ongoing.join([request(1)])
    with pytest.raises(ContextOverflowError):
        ongoing.join([request(2), request(3, max_tokens=10_000)])
    found: dict[int, Replies] = {}
    while ongoing.busy:
        found |= ongoing.advance()
    assert_same([found[number]], [reader.generate([request(1)])])


def test_other_calls_between_two_passes_disturb_nothing() -> None:
    reader: Any = tiny.build()
    alone = reader.generate([request(4, n=4)])
    ongoing = reader.ongoing()
    number = ongoing.join([request(4, n=4)])
    found: dict[int, Replies] = {}
    while ongoing.busy:
        found |= ongoing.advance()
        reader.generate([request(3, n=3)])
    assert_same([found[number]], [alone])


def test_a_cache_is_asked_before_who_shares_the_reader() -> None:
    class Empty:
        def get(self, keys: Sequence[str]) -> dict[str, str]:
            return {}

        def put(self, answers: Any) -> None:
            self.answers = answers

    cache = Empty()
    reader: Any = tiny.build()
    kept = KeptReader(tiny.build(), cache)
    assert kept.around(reader).inner is reader
    kept.around(reader).generate([request(1)])
    assert len(cache.answers) == 1
