"""The reader's hand-made parts beside transformers' continuous batching, and without each of them.

All sides have the same weights, random ones of a real size, in single precision on the processor,
the same prompts and replies of the same lengths; none has an end token. The reader is `hf:`, which
computes with transformers' own model, so that the sides differ only in what they hand to it:

    Hopscope                   a thread for each question or run, whose requests join running rows
    no scheduler               the same calls one after the other
    4 threads                  joining, and in batches that wait for their longest reply
    no prefix tree             `prefix_cache=0`
    transformers' cache        `DynamicCache`, which copies all keys and values for every token
    close draws stay           samples that rounding may have decided are not decided anew by a
                               pass of the row alone: they then depend on their company
    continuous batching        transformers' own; for answering also without sharing pages
    generate                   transformers' batches, padded on the left

transformers' continuous batching puts the tokens of all rows in one sequence. With attention of
torch, all that there is on a processor, each of them is compared with the keys of all rows, and a
mask takes away the others' afterwards. Its defaults are meant for large GPUs, so it has settings
here that were among the fastest of six; `batching_jobs` says what is asked. Its log-probabilities
are those after temperature, here 1; it gives no entropies, and has one seed for all requests.

A token is forwarded by a pass, padding included. A pair is a token that is compared with a key,
masked ones included. Memory is the peak above what was there before a turn, in the first round: a
rough figure, since a process does not give back all that it frees.
"""

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from credit_parts.bench import Benchmark
from credit_parts.memory import Memory
from credit_parts.passes import weights_of

from hopscope.runtime.types import Generation
from hopscope.runtime.wrappers.scheduled_reader import ScheduledReader
from peer_parts import batching_jobs, random_reader
from peer_parts.batching_jobs import Job, Replies, Reply
from peer_parts.library_generation import Batches, Paged, imported, quiet
from peer_parts.rounds import Table, ratio, spread, taken_in_turn

OURS, NEAR = "Hopscope", "close draws stay"
ROUNDS = 2
THREADS = 4
"""Where there are fewer threads than requests, so that some come later."""
BATCH = 8
"""Prompts of a batch to `generate`."""


class Side:
    """A side, with the model that computes for it and what its last turn took."""

    def __init__(self, model: Any, act: Callable[[], Replies], *, streams: bool = False) -> None:
        """`streams`: whether each sample has its own random stream, as ours have."""
        self.streams = streams
        self._model = model
        self._act = act
        self.passes = self.tokens = self.pairs = 0
        self.replies: Replies = []
        self.memory = Memory()

    def turn(self) -> None:
        self.passes = self.tokens = self.pairs = 0
        memory = Memory()
        _release()
        with self._counting(), memory.watched():
            self.replies = self._act()
        if self.memory.bytes is None:
            self.memory = memory

    @contextmanager
    def _counting(self) -> Iterator[None]:
        def hook(_: object, __: object, given: dict[str, Any]) -> None:
            ids, mask = given["input_ids"], given.get("attention_mask")
            if isinstance(mask, dict):
                [mask] = mask.values()
            if mask is None:
                keys = given["past_key_values"].get_seq_length() + ids.shape[-1]
            else:
                keys = mask.shape[-1]
            self.passes += 1
            self.tokens += ids.numel()
            self.pairs += ids.numel() * keys

        handle = self._model.register_forward_pre_hook(hook, with_kwargs=True)
        try:
            yield
        finally:
            handle.remove()


def measure(bench: Benchmark, *, prompts: int, rounds: int, layers: int, width: int) -> list[Table]:
    imported()
    folder = random_reader.save(bench.folder / "reader", layers=layers, width=width)
    bench = bench._replace(spec=f"hf:{folder}")
    reader, bare, copying = bench.reader(), bench.reader(bare=True), bench.reader()
    near = bench.reader()
    copying._decoder._prefill._caches._in_place = False  # as for a compiled model
    near._decoder._prefill.alone = None  # as in half precision
    readers = {
        OURS: reader,
        "no prefix tree": bare,
        "transformers' cache": copying,
        NEAR: near,
    }
    jobs = [
        batching_jobs.answering(reader, prompts),
        batching_jobs.measuring(reader, bench),
    ]
    weights = sum(each.numel() for each in weights_of(reader).parameters())
    tables = []
    with quiet():
        for each in readers.values():  # what is only done once
            each.generate([jobs[0].requests[0]])
            _forget(each)
        for job in jobs:
            sides = _sides(readers, job)
            seconds = taken_in_turn({name: side.turn for name, side in sides.items()}, rounds)
            heading = f"{job}. A model of {weights / 1e6:.0f} million weights"
            tables.append(_table(heading, job, sides, seconds))
    return tables


def _sides(readers: Mapping[str, Any], job: Job) -> dict[str, Side]:
    reader = readers[OURS]
    model = weights_of(reader)
    every = len(job.calls)
    sides = {
        name: _ours(each, job, threads=every)
        for name, each in readers.items()
        if job.sampled or name != NEAR
    }
    if every > 1:
        sides["no scheduler"] = _ours(reader, job, threads=1)
    if every > THREADS:
        sides[f"{THREADS} threads, joining"] = _ours(reader, job, threads=THREADS)
        sides[f"{THREADS} threads, in batches"] = _ours(
            reader, job, threads=THREADS, continuous=False
        )
    sides["continuous batching"] = Side(model, partial(Paged().replies, model, job))
    if not job.sampled:
        unshared = Paged(sharing=False)
        sides["continuous batching, no sharing"] = Side(
            model, partial(unshared.replies, model, job)
        )
    # A prompt with its samples is a batch.
    batches = Batches(1 if job.sampled else min(BATCH, every))
    label = f"generate, {batches.prompts} prompt{'s' if batches.prompts > 1 else ''} at a time"
    sides[label] = Side(model, partial(batches.replies, model, job))
    return sides


def _ours(reader: Any, job: Job, *, threads: int, continuous: bool = True) -> Side:
    def act() -> Replies:
        try:
            if threads == 1:
                return _replies(map(reader.generate, job.calls))
            with (
                ScheduledReader(reader, callers=threads, continuous=continuous) as shared,
                ThreadPoolExecutor(threads) as pool,
            ):
                return _replies(pool.map(shared.generate, job.calls))
        finally:
            _forget(reader)

    return Side(weights_of(reader), act, streams=True)


def _forget(reader: Any) -> None:
    """The next turn must not find the prompts of this one."""
    reader._decoder._prefill.tree.clear()


def _release() -> None:
    """Give freed memory back to the system, where that can be asked for."""
    gc.collect()
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


def _replies(found: Iterator[list[list[Generation]]]) -> Replies:
    return [
        [Reply(tuple(each.token_ids), tuple(each.logprobs)) for each in replies]
        for call in found
        for replies in call
    ]


def _table(
    heading: str, job: Job, sides: Mapping[str, Side], seconds: Mapping[str, list[float]]
) -> Table:
    own = sides[OURS]
    rows = []
    for name, side in sides.items():
        drawn = sum(len(reply.ids) for replies in side.replies for reply in replies)
        if drawn != job.drawn:
            raise SystemExit(f"{name}: {drawn} tokens instead of {job.drawn}")
        rows.append(
            (
                name,
                str(spread(seconds[name])),
                str(ratio(seconds[name], seconds[OURS])),
                str(side.passes),
                f"{side.tokens:,}",
                f"{side.pairs / 1e6:.2f}",
                "" if side.memory.bytes is None else f"{side.memory.bytes / 1e6:.0f}",
                _agreement(own, side) if side.streams or not job.sampled else "-",
            )
        )
    columns = ("", "seconds", "times ours", "passes", "tokens", "pairs, M", "memory, MB", "equal")
    return Table(heading, columns, rows)


def _agreement(own: Side, side: Side) -> str:
    """How many replies are equal to ours, and the largest difference of their log-probabilities."""
    pairs = [
        pair
        for mine, theirs in zip(own.replies, side.replies, strict=True)
        for pair in zip(mine, theirs, strict=True)
    ]
    equal = [(one, other) for one, other in pairs if one.ids == other.ids]
    apart = max(
        (
            abs(a - b)
            for one, other in equal
            for a, b in zip(one.logprobs, other.logprobs, strict=True)
        ),
        default=0.0,
    )
    return f"{len(equal)} of {len(pairs)}, {apart:.0e}"
