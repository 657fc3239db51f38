"""Coverage and width of 95 % intervals in simulated worlds.

Beliefs go through the meter itself (N = 10): a scripted reader draws replies of known probability
and likelihood, so that the limit of SePer is known. "before" is the interval that the present one
replaced: Clopper and Pearson's without unseen replies, BCa for paired shares, plain percentiles for
correlations.

    python benchmarks/estimation/intervals.py [--draws 4000] [--json]
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from hopscope.lab.suites.resampling import Pairs
from hopscope.runtime.ports import Probabilities, Statement
from hopscope.runtime.types import Generation, GenerationRequest, Question, Scored, ScoreRequest
from hopscope.tracing.beliefs.belief import Weighting
from hopscope.tracing.beliefs.beliefs import Belief
from hopscope.tracing.meters.seper import SePer
from hopscope.tracing.statistics.intervals import (
    Interval,
    ValueInterval,
    difference,
    quantiles,
    weighted_mean,
)
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, differences, estimates

SAMPLES = 10
GOLD = "gold"


class Reply(NamedTuple):
    """A possible reply of a simulated reader."""

    text: str
    probability: float
    logprob: float
    """Of each of its three tokens."""


class Scripted:
    """Says given replies, so many of each."""

    name = "scripted"

    def __init__(self, replies: Sequence[Reply], counts: Sequence[int]) -> None:
        self._said = [
            Generation(text=reply.text, tokens=("a", "b", "c"), logprobs=(reply.logprob,) * 3)
            for reply, count in zip(replies, counts, strict=True)
            for _ in range(count)
        ]

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        return [self._said for _ in requests]

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        raise TypeError("a scripted reader scores nothing")


class Wordings:
    """Accepts every wording of the gold."""

    name = "wordings"

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        same = (GOLD in each.premise and GOLD in each.hypothesis for each in statements)
        return [Probabilities(1, 0, 0) if each else Probabilities(0, 0, 1) for each in same]


class Cell(NamedTuple):
    """Coverage and width of the intervals in one world."""

    coverage: float
    width: float
    before: float
    """Coverage of the interval that was replaced."""
    width_before: float


def reader(right: float, ratio: float, wordings: int = 1) -> list[Reply]:
    """Says the gold with probability `right`, in so many wordings, and four wrong answers; each of
    those weighs `ratio` times as much as the gold by its mean log-probability."""
    gold, wrong = (-log(ratio), -0.001) if ratio > 1 else (-0.001, log(ratio))
    golds = [f"the {GOLD} {'very ' * i}".strip() if i else GOLD for i in range(wordings)]
    return [
        *(Reply(text, right / wordings, gold) for text in golds),
        *(Reply(f"wrong {i}", (1 - right) / 4, wrong) for i in "abcd"),
    ]


class Beliefs:
    """The meter's interval for each outcome of ten draws, computed once."""

    def __init__(self, replies: Sequence[Reply], weight: Weighting) -> None:
        self._replies, self._weight = replies, weight
        self._known: dict[tuple[int, ...], tuple[ValueInterval, Interval]] = {}
        weighs = [1.0 if weight == "uniform" else exp(reply.logprob) for reply in replies]
        mass = [r.probability * w for r, w in zip(replies, weighs, strict=True)]
        right = [m for r, m in zip(replies, mass, strict=True) if GOLD in r.text]
        self.limit = sum(right) / sum(mass)

    def draw(self, rng: Generator, draws: int) -> Iterator[tuple[ValueInterval, Interval]]:
        chances = [reply.probability for reply in self._replies]
        for counts in rng.multinomial(SAMPLES, chances, size=draws).tolist():
            key = tuple(counts)
            if key not in self._known:
                self._known[key] = self._measured(key)
            yield self._known[key]

    def _measured(self, counts: tuple[int, ...]) -> tuple[ValueInterval, Interval]:
        meter = SePer(Scripted(self._replies, counts), Wordings(), weight=self._weight)
        [belief] = meter.beliefs(Question(text="q", answers=(GOLD,)), [()])
        [measured] = meter.measure(Question(text="q", answers=(GOLD,)), [()])
        assert isinstance(belief, Belief)
        assert measured.value is not None
        assert measured.low is not None
        assert measured.high is not None
        found = ValueInterval(measured.value, measured.low, measured.high)
        return found, weighted_mean(measured.value, belief.weights)


def beliefs(draws: int) -> Iterator[tuple[str, Cell]]:
    worlds: dict[str, tuple[Weighting, list[Reply]]] = {}
    for right in (0.02, 0.2, 0.5, 0.8, 0.95):
        worlds[f"belief, equal weights, p = {right}"] = "uniform", reader(right, 1.0)
        worlds[f"belief, likelier replies weigh more, p = {right}"] = (
            "lennorm",
            reader(right, 1 / 1.6 if right > 0.5 else 1.6),
        )
    for ratio in (1.6, 2.3, 4.0):
        for right in (0.7, 0.8, 0.9):
            name = f"belief, rarer replies weigh {ratio} times as much, p = {right}"
            worlds[name] = "lennorm", reader(right, ratio)
    name = "belief, rarer replies weigh 2.3 times as much, p = 0.8 in 40 wordings"
    worlds[name] = "lennorm", reader(0.8, 2.3, wordings=40)
    for name, (weight, replies) in worlds.items():
        drawn = Beliefs(replies, weight)
        rng = np.random.default_rng(0)
        pairs = [(Interval(e.low, e.high), before) for e, before in drawn.draw(rng, draws)]
        yield name, cell(drawn.limit, pairs)
    after, before = Beliefs(reader(0.8, 2.3), "lennorm"), Beliefs(reader(0.02, 1.6), "lennorm")
    rng = np.random.default_rng(0)
    found: list[tuple[tuple[float, float], tuple[float, float]]] = []
    for (one, plain), (other, bare) in zip(
        after.draw(rng, draws), before.draw(rng, draws), strict=True
    ):
        new = difference(one, other)
        old = difference(ValueInterval(one.value, *plain), ValueInterval(other.value, *bare))
        found.append(((new.low, new.high), (old.low, old.high)))
    name = "difference of beliefs, rarer replies weigh 2.3 times as much, p = 0.8"
    yield name, cell(after.limit - before.limit, found)


def shares(draws: int) -> Iterator[tuple[str, Cell]]:
    """Differences of two systems that are right or wrong on the same questions."""
    for questions in (20, 50, 200):
        for one, other in ((0.95, 0.95), (0.95, 0.9), (0.8, 0.7), (0.5, 0.5)):
            for together in (0.0, 0.5):
                rng = np.random.default_rng(0)
                both = one * other + together * ((one * (1 - one) * other * (1 - other)) ** 0.5)
                chances = [both, one - both, other - both, 1 - one - other + both]
                counts = rng.multinomial(questions, np.clip(chances, 0, 1), size=draws // 2)
                ones = np.ones(questions)
                pairs = [
                    (
                        Column(np.repeat([1.0, 1, 0, 0], each), ones, ones, ones, binary=True),
                        Column(np.repeat([1.0, 0, 1, 0], each), ones, ones, ones, binary=True),
                    )
                    for each in counts
                ]
                bootstrap = Bootstrap(resamples=1000)
                new = differences(pairs, bootstrap)
                gaps = [Column(a.above - b.above, ones, ones, ones) for a, b in pairs]
                old = estimates(gaps, bootstrap)
                found = [
                    ((n.low or 0.0, n.high or 0.0), (o.low or 0.0, o.high or 0.0))
                    for n, o in zip(new, old, strict=True)
                ]
                name = f"paired shares, {questions} questions, {one} and {other}, r {together}"
                yield name, cell(one - other, found)


Draw = Callable[[Generator, int], tuple[np.ndarray, np.ndarray]]


def flipped(share: float) -> Draw:
    """Scores that agree with a truth of 0 and 1 but for this share."""

    def draw(rng: Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        truth = (rng.random(count) < 0.5).astype(float)
        return np.where(rng.random(count) < share, 1 - truth, truth), truth

    return draw


def normal(r: float) -> Draw:
    def draw(rng: Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        truth = rng.normal(size=count)
        return r * truth + (1 - r * r) ** 0.5 * rng.normal(size=count), truth

    return draw


def correlations(draws: int) -> Iterator[tuple[str, Cell]]:
    worlds: dict[str, tuple[float, Draw]] = {
        "0 and 1, r .98": (0.98, flipped(0.01)),
        "0 and 1, r .6": (0.6, flipped(0.2)),
        "normal, r .98": (0.98, normal(0.98)),
        "normal, r .3": (0.3, normal(0.3)),
    }
    for name, (r, draw) in worlds.items():
        for count in (30, 50, 140):
            rng = np.random.default_rng(0)
            found = []
            for _ in range(draws // 2):
                scores, truth = draw(rng, count)
                pairs = Pairs(truth.tolist(), list(range(count)), seed=0, resamples=1000)
                new = pairs.pearson(scores.tolist())
                if new.value is None:  # a series of one value has no correlation
                    continue
                [old], _ = pairs._pearson(scores.tolist())
                drawn = old[1:][np.isfinite(old[1:])]
                low, high = quantiles(drawn)
                found.append(((new.low or 0.0, new.high or 0.0), (low, high)))
            yield f"Pearson's r, {count} pairs, {name}", cell(r, found)


def cell(truth: float, found: Sequence[tuple[tuple[float, float], tuple[float, float]]]) -> Cell:
    """Of pairs of the interval and the one before it."""

    def held(low: float, high: float) -> bool:
        return low - 1e-9 <= truth <= high + 1e-9

    return Cell(
        coverage=float(np.mean([held(*new) for new, _ in found])),
        width=float(np.mean([high - low for (low, high), _ in found])),
        before=float(np.mean([held(*old) for _, old in found])),
        width_before=float(np.mean([high - low for _, (low, high) in found])),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=4000, help="of each belief; of others half")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.draws < 4:
        parser.error("--draws of 4 or more is needed")
    found = {}
    if not asked.json:
        print("| world | coverage | width | before: coverage | width |")
        print("|---|--:|--:|--:|--:|")
    for part in (beliefs, shares, correlations):
        for name, each in part(asked.draws):
            found[name] = each._asdict()
            if not asked.json:
                print(
                    f"| {name} | {each.coverage:.3f} | {each.width:.3f} | {each.before:.3f} "
                    f"| {each.width_before:.3f} |",
                    flush=True,
                )
    if asked.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
