"""Threads that share a reader get what each would get alone."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from hopscope.runtime.errors import ContextOverflowError, ReaderError
from hopscope.runtime.generation.forwarding import Forwarder
from hopscope.runtime.models.parts import Part
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf, tiny
from hopscope.runtime.types import Generation, GenerationRequest, Passage, Scored, ScoreRequest
from hopscope.runtime.wrappers.scheduled_reader import ScheduledReader
from tests import models
from tests.probes import Speaker

THREADS = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(models.tiny_llama(tmp_path_factory.mktemp("model") / "llama"))


def asked(thread: int, call: int, n: int = 6) -> list[GenerationRequest]:
    """What a thread asks for in one call: two contexts."""
    evidence = [
        Passage(title=f"Film {thread}", text=f"Film {thread} was made in {1900 + i} by Bruno.")
        for i in range(call + 1)
    ]
    return [
        GenerationRequest(
            prompt=prompts.short_answer(f"When was film {thread} made?", shown),
            n=n,
            temperature=1.0,
            max_tokens=6,
            seed=thread,
        )
        for shown in ((), evidence)
    ]


def by_thread(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, range(threads)))


def life(
    reader: Any, thread: int, *, calls: int = 3, n: int = 6
) -> tuple[list[Generation], list[Scored]]:
    """Calls for samples, and one for the likelihood of what was said."""
    drawn: list[Generation] = []
    for call in range(calls):
        drawn += [g for replies in reader.generate(asked(thread, call, n)) for g in replies]
    prompt = asked(thread, 0)[0].prompt
    told = [ScoreRequest(prompt=prompt, token_ids=g.token_ids) for g in drawn]
    return drawn, reader.score(told)


def test_eight_threads_get_what_each_gets_alone(folder: str) -> None:
    alone: Any = hf.build(model=folder)
    shared: Any = hf.build(model=folder)
    expected = [life(alone, thread) for thread in range(THREADS)]
    with ScheduledReader(shared, callers=THREADS) as reader:
        found = by_thread(lambda thread: life(reader, thread))
    same = total = 0
    for (ours, our_scores), (theirs, their_scores) in zip(found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            total += 1
            same += one.token_ids == other.token_ids
        for score, other_score in zip(our_scores, their_scores, strict=True):
            if score.token_ids == other_score.token_ids:
                assert score.logprobs == pytest.approx(other_score.logprobs, abs=1e-4)
                assert score.entropies == pytest.approx(other_score.entropies, abs=1e-4)
    assert total == THREADS * 36
    assert same >= 0.999 * total
    assert shared.forwarded.passes < 0.5 * alone.forwarded.passes


def test_deterministic_is_alone_to_the_last_bit(folder: str) -> None:
    try:
        torch.use_deterministic_algorithms(True)
        alone = hf.build(model=folder)
        expected = [life(alone, thread, calls=2, n=2) for thread in range(4)]
        shared = hf.build(model=folder)
        with ScheduledReader(shared, callers=4, deterministic=True) as reader:
            assert by_thread(lambda thread: life(reader, thread, calls=2, n=2), 4) == expected
    finally:
        torch.use_deterministic_algorithms(False)


def test_an_error_stays_with_who_caused_it(folder: str) -> None:
    """Without a second try, call by call, everyone in the batch would fail."""
    alone: Any = hf.build(model=folder)

    def work(thread: int) -> Any:
        requests = asked(thread, 0)
        if thread == 3:
            long = requests[1].model_copy(update={"max_tokens": 10_000})
            with pytest.raises(ContextOverflowError, match="10000 more"):
                reader.generate([requests[0], long])
        return reader.generate(requests)

    with ScheduledReader(hf.build(model=folder), callers=THREADS) as reader:
        found = by_thread(work)
    for thread, replies in enumerate(found):
        expected = alone.generate(asked(thread, 0))
        assert [[g.token_ids for g in r] for r in replies] == [
            [g.token_ids for g in r] for r in expected
        ]


class Gate(Speaker):
    """Waits before each batch until it is let through, and keeps who was in it."""

    def __init__(self) -> None:
        super().__init__(lambda request: request.prompt.messages[-1].content)
        self.entered = threading.Semaphore(0)
        self.through = threading.Semaphore(0)
        self.batches: list[list[int]] = []

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        self.entered.release()
        assert self.through.acquire(timeout=30)
        self.batches.append([request.seed for request in requests])
        return super().generate(requests)


def of(seed: int, number: int = 1) -> list[GenerationRequest]:
    prompt = prompts.short_answer(f"Is it {seed}?")
    return [GenerationRequest(prompt=prompt, seed=seed)] * number


def test_a_large_call_does_not_hold_up_a_small_one() -> None:
    gate = Gate()
    with ThreadPoolExecutor(3) as pool, ScheduledReader(gate, callers=3, batch=4) as reader:
        first = pool.submit(reader.generate, of(0))
        assert gate.entered.acquire(timeout=30)
        large = pool.submit(reader.generate, of(1, 9))
        wait_for(lambda: len(reader._calls) == 1)
        small = pool.submit(reader.generate, of(2))
        wait_for(lambda: len(reader._calls) == 2)
        for _ in range(4):
            gate.through.release()
        assert [len(call.result(timeout=30)) for call in (first, large, small)] == [1, 9, 1]
    assert gate.batches == [[0], [1, 2, 1, 1], [1, 1, 1, 1], [1, 1]]


def test_a_batch_waits_for_the_threads_that_were_answered() -> None:
    gate = Gate()
    reader = ScheduledReader(gate, callers=2, window_seconds=60)
    with ThreadPoolExecutor(2) as pool, reader:
        for seeds in ((0, 1), (2, 3)):
            gate.through.release()
            calls = [pool.submit(reader.generate, of(seeds[0]))]
            wait_for(lambda: len(reader._calls) == 1)
            calls.append(pool.submit(reader.generate, of(seeds[1])))
            assert [len(call.result(timeout=30)) for call in calls] == [1, 1]
    assert gate.batches == [[0, 1], [2, 3]]


def test_who_asks_for_more_than_there_is_room_for_waits() -> None:
    gate = Gate()
    with ThreadPoolExecutor(4) as pool, ScheduledReader(gate, callers=9, waiting=2) as reader:
        calls = [pool.submit(reader.generate, of(0))]
        assert gate.entered.acquire(timeout=30)
        calls.append(pool.submit(reader.generate, of(1, 2)))
        wait_for(lambda: len(reader._calls) == 1)
        calls.append(pool.submit(reader.generate, of(2, 5)))
        wait_for(lambda: len(reader._arriving) == 1)
        calls.append(pool.submit(reader.generate, of(3)))
        wait_for(lambda: len(reader._arriving) == 2)
        assert sum(call.left for call in reader._calls) == 2
        for _ in calls:
            gate.through.release()
        assert [len(call.result(timeout=30)) for call in calls] == [1, 2, 5, 1]
    assert gate.batches[:3] == [[0], [1, 1], [2] * 5]


def test_closing_answers_who_waits_and_refuses_the_next() -> None:
    gate = Gate()
    reader = ScheduledReader(gate, callers=9)
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(reader.generate, of(0))]
        assert gate.entered.acquire(timeout=30)
        calls.append(pool.submit(reader.generate, of(1)))
        wait_for(lambda: len(reader._calls) == 1)
        closing = pool.submit(reader.close)
        for _ in calls:
            gate.through.release()
        assert [len(call.result(timeout=30)) for call in calls] == [1, 1]
        closing.result(timeout=30)
    reader.close()
    assert not reader._thread.is_alive()
    with pytest.raises(ReaderError, match="after it was closed"):
        reader.generate(of(2))


def test_who_stops_waiting_for_room_is_in_nobodys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends the waiting of the main thread; its call would be the next to be let in."""
    gate = Gate()
    reader = ScheduledReader(gate, callers=9, waiting=1)
    wait = reader._changed.wait

    def interrupted(seconds: float | None = None) -> bool:
        if threading.current_thread() is not threading.main_thread():
            return wait(seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr(reader._changed, "wait", interrupted)
    with ThreadPoolExecutor(3) as pool, reader:
        calls = [pool.submit(reader.generate, of(0))]
        assert gate.entered.acquire(timeout=30)
        calls.append(pool.submit(reader.generate, of(1)))
        wait_for(lambda: len(reader._calls) == 1)
        with pytest.raises(KeyboardInterrupt):
            reader.generate(of(2))
        calls.append(pool.submit(reader.generate, of(3)))
        for _ in calls:
            gate.through.release()
        assert [len(call.result(timeout=30)) for call in calls] == [1, 1, 1]
    assert gate.batches == [[0], [1], [3]]


@pytest.mark.parametrize("error", [SystemExit, MemoryError, AssertionError])
def test_whatever_the_reader_raises_reaches_who_caused_it(error: type[BaseException]) -> None:
    """`sys.exit` in a thread ends it without a word, and nobody would ever be answered."""

    def say(request: GenerationRequest) -> str:
        if request.seed == 1:
            raise error("no")
        return "yes"

    with ThreadPoolExecutor(3) as pool, ScheduledReader(Speaker(say), callers=3) as reader:
        calls = [pool.submit(reader.generate, of(seed)) for seed in range(3)]
        assert [len(calls[seed].result(timeout=30)) for seed in (0, 2)] == [1, 1]
        with pytest.raises(error, match="no"):
            calls[1].result(timeout=30)


def test_a_pass_that_fails_is_nobodys_end_but_of_who_caused_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is memory for each call alone, but not for all, and for one not even then."""
    requests = [asked(thread, 3, n=1)[1] for thread in range(4)]
    model: Any = tiny.build()
    replies = [model.generate([request]) for request in requests]
    lengths = [len(model.prompt_ids(request)) for request in requests]
    longest = requests[3].model_copy(update={"prompt": prompts.short_answer("word " * 400)})
    together = Forwarder.together

    def bounded(self: Forwarder, parts: Sequence[Part], **options: int) -> list[torch.Tensor]:
        tokens = sum(part.cache.tokens * len(part.ids) + part.ids.numel() for part in parts)
        if tokens > max(lengths) + 64:
            raise torch.OutOfMemoryError
        return together(self, parts, **options)

    monkeypatch.setattr(Forwarder, "together", bounded)
    with (
        ThreadPoolExecutor(5) as pool,
        ScheduledReader(tiny.build(), callers=5, window_seconds=30) as reader,
    ):
        calls = [pool.submit(reader.generate, [request]) for request in (*requests, longest)]
        for call, expected in zip(calls, replies, strict=False):
            [[reply]], [[wanted]] = call.result(timeout=60), expected
            assert reply.token_ids == wanted.token_ids
        with pytest.raises(ReaderError, match="out of memory"):
            calls[4].result(timeout=60)
        assert reader.score([]) == []
        assert len(reader._joined) == len(reader._calls) == 0


def test_it_can_do_what_the_reader_can(folder: str) -> None:
    request = asked(0, 0)[1]
    whole = hf.build(model=folder)
    with ScheduledReader(whole, callers=1) as reader:
        assert reader.more is not None
        assert reader.branch is not None
        first = reader.generate([request.model_copy(update={"n": 2})])[0]
        rest = reader.more([request.model_copy(update={"n": 4})], first=2)[0]
        drawn = [g.token_ids for g in (*first, *rest)]
        assert reader.generate([]) == []
    assert drawn == [g.token_ids for g in whole.generate([request])[0]]
    with ScheduledReader(Gate(), callers=1) as plain:
        assert plain.more is None
        assert plain.branch is None


def wait_for(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(3000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it never came to that")
