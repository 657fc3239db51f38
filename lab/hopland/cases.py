"""Questions over worlds that a reader has never seen, and shares and means with intervals.

Every question gets a context from a fresh world of test names: its gold passages and distractors.
At least half of the distractors mention an entity or a relation of the chain.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from numpy.typing import ArrayLike

from hopscope.lab.hopland import world
from hopscope.lab.hopland.contexts import Sampler
from hopscope.lab.hopland.names import Forge, Split
from hopscope.lab.hopland.questions import GeneratedQuestion, chain
from hopscope.lab.hopland.world import Fact, Phrasing
from hopscope.runtime.types import Measurement, Passage
from hopscope.tracing.statistics import averages
from hopscope.tracing.statistics.intervals import quantiles

Request = TypeVar("Request")

FIRST_WORLD = 1_000_000
PASSAGES = 5
BATCH = 50
"""Requests per call to a reader."""


@dataclass(frozen=True)
class Case:
    """A question with its contexts."""

    asked: GeneratedQuestion
    full: tuple[Passage, ...]
    """All gold passages and distractors."""
    gold: frozenset[int]
    """Positions of the gold passages among them, from 1."""
    parts: tuple[tuple[Passage, ...], ...]
    """For each hop: the context with that hop's gold passage replaced by a distractor."""
    bare: tuple[Passage, ...]
    """Distractors only."""


def cases(
    hops: int,
    n: int,
    *,
    phrasing: Phrasing = "mixed",
    passages: int = PASSAGES,
    split: Split = "test",
) -> list[Case]:
    """Cases of chains of `hops` hops over `passages` passages, two from each world; its names are
    from the split for tests or for training."""
    made: list[Case] = []
    seed = FIRST_WORLD
    while len(made) < n:
        seed += 1
        rng = random.Random(f"evaluate {seed}")
        drawn = world.make(seed, split=split, phrasing=phrasing)
        sampler = Sampler(drawn, rng, Forge(rng, split, world.RESERVED))
        made += [case for _ in range(2) if (case := _case(sampler, rng, hops, passages))]
    return made[:n]


def _case(sampler: Sampler, rng: random.Random, hops: int, passages: int) -> Case | None:
    steps = sampler.walk(hops)
    drawn = sampler.world
    gold = list(dict.fromkeys(drawn.telling_of[f] for f in steps))
    names = {name for f in steps for name in (f.subject, f.object)}
    if len(gold) < hops or len(names) < hops + 1:
        return None
    near = [
        i
        for i, t in enumerate(drawn.tellings)
        if i not in gold and any(_near(f, steps) for f in t.facts)
    ]
    far = [i for i in range(len(drawn.tellings)) if i not in gold and i not in near]
    half = min(len(near), (passages + 1) // 2)
    distractors = rng.sample(near, half) + rng.sample(far, passages - half)
    rng.shuffle(distractors)

    def shown(kept: Sequence[int]) -> tuple[Passage, ...]:
        needed = passages - len(kept)
        close = [d for d in distractors if d in near][: (needed + 1) // 2]
        rest = [d for d in distractors if d not in close][: needed - len(close)]
        order = rng.sample([*kept, *close, *rest], passages)
        return tuple(drawn.tellings[i].passage for i in order)

    parts = tuple(shown([g for g in gold if g != out]) for out in gold)
    asked, full = chain(rng, steps), shown(gold)
    of_gold = {drawn.tellings[i].passage for i in gold}
    numbers = frozenset(i for i, passage in enumerate(full, start=1) if passage in of_gold)
    return Case(asked, full, numbers, parts, shown([]))


def _near(fact: Fact, steps: Sequence[Fact]) -> bool:
    names = {name for f in steps for name in (f.subject, f.object)}
    relations = {f.relation for f in steps}
    return fact.relation in relations or fact.subject in names or fact.object in names


@dataclass(frozen=True)
class Check:
    """A measurement of a reader beside the value that it should have."""

    name: str
    measurement: Measurement
    wanted: str = ""


def share(name: str, hits: Sequence[bool], wanted: str = "") -> Check:
    """The share of hits."""
    estimator = "share(interval=clopper-pearson)"
    found = averages.share(sum(hits), len(hits), estimator=estimator, missing="no questions")
    return Check(name, found, wanted)


def mean(name: str, values: Sequence[float], wanted: str = "") -> Check:
    """The mean, with a normal interval."""
    n, centre = len(values), sum(values) / len(values)
    spread = (sum((v - centre) ** 2 for v in values) / max(1, n - 1) / n) ** 0.5
    low, high = centre - 1.96 * spread, centre + 1.96 * spread
    estimator = "mean(interval=normal)"
    return Check(
        name, Measurement(value=centre, n=n, estimator=estimator, low=low, high=high), wanted
    )


def resampled(name: str, value: float, drawn: ArrayLike, n: int, wanted: str) -> Check:
    """A statistic of `n` questions, with the interval of its values in resamples."""
    low, high = quantiles(drawn)
    estimator = f"{name}(interval=percentile bootstrap over questions)"
    found = Measurement(value=value, n=n, seed=0, estimator=estimator, low=low, high=high)
    return Check(name, found, wanted)


def batches(requests: Sequence[Request]) -> Iterator[Sequence[Request]]:
    """Requests in batches for a reader."""
    for i in range(0, len(requests), BATCH):
        yield requests[i : i + BATCH]
