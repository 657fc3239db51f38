"""Questions of Hopland that need different numbers of retrievals; some have no answer.

Invariant: a world of its own for each seed; the passage that an unanswerable question needs last is
not in the corpus, and no other question needs it.
"""

import random
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from hopscope.lab.hopland import world
from hopscope.lab.hopland.contexts import Sampler
from hopscope.lab.hopland.names import Forge
from hopscope.lab.hopland.questions import GeneratedQuestion, chain
from hopscope.lab.hopland.world import Fact
from hopscope.runtime.types import Passage, Question

Need = Literal["known", "one hop", "two hops", "three hops", "unanswerable"]

SHARES: dict[Need, float] = {
    "known": 0.15,
    "one hop": 0.25,
    "two hops": 0.30,
    "three hops": 0.20,
    "unanswerable": 0.10,
}
HOPS: dict[Need, int] = {"one hop": 1, "two hops": 2, "three hops": 3}
SCALE = 256


class Posed(NamedTuple):
    """A question and its need of retrievals."""

    question: Question
    need: Need


class Mixture(NamedTuple):
    passages: tuple[Passage, ...]
    questions: tuple[Posed, ...]
    """Shuffled."""


def mixture(seed: int, count: int) -> Mixture:
    """So many questions in the shares of `SHARES`, rounded down, and the corpus they are about."""
    made = world.make(seed, split="test", scale=SCALE, phrasing="mixed", density="sparse")
    rng = random.Random(seed)
    sampler = Sampler(made, rng, Forge(rng, "test", world.RESERVED))
    missing: set[int] = set()
    needed: set[int] = set()
    posed: list[Posed] = []

    def places(facts: tuple[Fact, ...]) -> list[int]:
        return [made.telling_of[fact] for fact in facts if fact in made.telling_of]

    def add(need: Need, asked: GeneratedQuestion) -> None:
        answers = () if need == "unanswerable" else (asked.answer,)
        identity = f"budget-{seed}-{len(posed)}"
        posed.append(Posed(Question(text=asked.text, answers=answers, id=identity), need))

    while len(posed) < int(count * SHARES["unanswerable"]):
        asked = next(_chains(rng, sampler, rng.choice((1, 2)), missing, places))
        *before, last = places(asked.steps)
        if last in needed:  # for the first hop of another
            continue
        missing.add(last)
        needed.update(before)
        add("unanswerable", asked)
    for need, hops in HOPS.items():
        for _ in range(int(count * SHARES[need])):
            add(need, next(_chains(rng, sampler, hops, missing, places)))
    for _ in range(int(count * SHARES["known"])):
        add("known", sampler.fixed())
    rng.shuffle(posed)
    passages = (t.passage for i, t in enumerate(made.tellings) if i not in missing)
    return Mixture(tuple(passages), tuple(posed))


def _chains(
    rng: random.Random,
    sampler: Sampler,
    hops: int,
    missing: set[int],
    places: Callable[[tuple[Fact, ...]], list[int]],
) -> Iterator[GeneratedQuestion]:
    """Chains whose passages are all there."""
    while True:
        steps = tuple(sampler.walk(hops))
        names = {name for fact in steps for name in (fact.subject, fact.object)}
        whole = len(steps) == hops and len(names) == hops + 1
        if whole and len(places(steps)) == hops and not missing.intersection(places(steps)):
            yield chain(rng, steps)
