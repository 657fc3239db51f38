"""Sampling until an interval is narrow: the looks, and that the interval keeps its level."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hopscope.runtime.errors import UsageError
from hopscope.runtime.readers import hf
from hopscope.runtime.types import Generation, GenerationRequest, Question
from hopscope.tracing.entailments import lexical
from hopscope.tracing.meters import seper
from hopscope.tracing.statistics import looks
from hopscope.tracing.statistics.intervals import clopper_pearson
from hopscope.tracing.wrappers.cached import CachedReader
from tests import models
from tests.fakes import (
    CONTRADICTS,
    ENTAILS,
    Ending,
    ScriptedEntailment,
    ScriptedReader,
    passage,
    reply,
)

WHO = Question(text="Who?", answers=("g",))
JUDGE = ScriptedEntailment(
    {(one, other): ENTAILS if "b" not in (one, other) else CONTRADICTS
     for one in "abg" for other in "abg" if one != other}
)  # fmt: skip


@pytest.mark.parametrize(
    ("samples", "sizes"),
    [(1, (1,)), (8, (8,)), (9, (5, 9)), (10, (5, 10)), (100, (7, 13, 25, 50, 100))],
)
def test_sizes_double_up_to_all_samples(samples: int, sizes: tuple[int, ...]) -> None:
    assert looks.sizes(samples) == sizes


def test_the_error_is_spent_in_equal_parts() -> None:
    assert looks.level_each(1) == pytest.approx(0.95)
    assert looks.level_each(5) == pytest.approx(0.99)


@pytest.mark.parametrize("truth", [0.5, 0.8, 0.95, 0.99])
def test_the_interval_that_is_stopped_at_covers_the_truth(truth: float) -> None:
    """Stopping at the first narrow interval. If each look had the whole error, .5 would be covered
    in .946 of cases."""
    rng, sizes, level = np.random.default_rng(7), looks.sizes(80), looks.level_each(5)
    intervals = {
        (hits, size): clopper_pearson(hits / size, size, level)
        for size in sizes
        for hits in range(size + 1)
    }
    covered, drawn, repetitions = 0, 0, 4000
    for _ in range(repetitions):
        hits = np.cumsum(rng.random(80) < truth)
        for size in sizes:
            low, high = intervals[int(hits[size - 1]), size]
            if high - low <= 0.45 or size == 80:
                break
        covered += low <= truth <= high
        drawn += size
    assert covered / repetitions >= 0.95
    assert drawn / repetitions < 80


class Endless(ScriptedReader):
    """Sample i of any prompt is the i-th text; draws in several goes."""

    def __init__(self, texts: str) -> None:
        super().__init__()
        self.texts = texts
        self.goes: list[tuple[int, list[int]]] = []

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        return self.more(requests, first=0)

    def more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        self.goes.append((first, [len(request.prompt.shown) for request in requests]))
        return [
            [
                reply("a" if request.prompt.shown else self.texts[i])
                for i in range(first, first + request.n)
            ]
            for request in requests
        ]


def test_only_the_contexts_whose_interval_is_wide_are_sampled_on() -> None:
    """With x every reply is right, narrow at 20; without, replies alternate and stay wide."""
    reader = Endless("ab" * 20)
    meter = seper.build(reader, JUDGE, samples=40, width=0.3, weight="uniform")
    without, with_x = meter.measure(WHO, [(), (passage("x"),)])
    assert (without.n, with_x.n) == (40, 20)
    assert (without.value, with_x.value) == (0.5, 1.0)
    assert reader.goes == [(0, [0, 1]), (5, [0, 1]), (10, [0, 1]), (20, [0])]
    assert with_x.low == pytest.approx(clopper_pearson(1, 20, looks.level_each(4)).low)
    assert "width=0.3, looks=5-10-20-40" in with_x.estimator
    assert with_x.estimator == without.estimator


def test_a_reader_that_cannot_draw_on_draws_all_at_once() -> None:
    reader = ScriptedReader([[reply("a")] * 40])
    [found] = seper.build(CachedReader(reader), JUDGE, samples=40, width=0.3).measure(WHO, [()])
    assert found.n == 40
    assert "looks=40" in found.estimator


@pytest.mark.parametrize(
    "options", [{"width": 0.0}, {"width": 1.5}, {"width": 0.2, "weight": "raw"}]
)
def test_widths_of_no_use_are_refused(options: Any) -> None:
    with pytest.raises(UsageError, match="width"):
        seper.build(ScriptedReader(), JUDGE, **options)


def test_on_a_real_reader_the_samples_are_those_drawn_at_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Never narrow, so all samples are drawn: the value is that of plain sampling, from the cache
    or not, and only the level of the interval differs."""
    folder = models.tiny_llama(tmp_path_factory.mktemp("llama"))
    real = Ending(hf.build(model=str(folder), device="cpu"))
    who = Question(text="Who?", answers=("e", "1"))
    options: Any = {"samples": 20, "max_tokens": 2}
    plain = seper.build(real, lexical.build(), **options)
    [whole] = plain.measure(who, [()])
    for reader in (real, CachedReader(real)):
        meter = seper.build(reader, lexical.build(), width=0.01, **options)
        [found] = meter.measure(who, [()])
        assert (found.value, found.n) == (whole.value, 20)
        assert found.low is not None
        assert whole.low is not None
        assert found.low <= whole.low
        assert meter.measure(who, [()]) == [found]
