"""A source of questions generated from a seed: a world of known facts.

Invariants: the same seed gives the same world, questions and passages; the first n questions are
the same for every limit; the world's names are test names, which no reader was trained on, and its
questions end in facts of one passage each, so no reader knows them closed book.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from random import Random

from hopscope.api.presets import Presets
from hopscope.lab.hopland import world
from hopscope.lab.hopland.contexts import Sampler
from hopscope.lab.hopland.names import Forge
from hopscope.lab.hopland.questions import chain
from hopscope.lab.hopland.world import Fact, World
from hopscope.lab.suites.inputs import NO_PRESETS, SuiteInputs, of_source
from hopscope.lab.suites.known import KnownQuestion, Need
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Reader, Retriever
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Passage, Question

SCALE = 64
"""Scale of the world: 1,152 entities in some 1,300 passages."""
TRIES = 500
"""After this many draws without a new question the world has no more."""


@dataclass(frozen=True)
class GeneratedWorld:
    """Chain questions over a world of a seed."""

    seed: int
    world: World
    retriever: Retriever
    """BM25 over all passages of the world."""
    passages: Sequence[Passage]
    hops: tuple[int, ...] = (1, 2, 3)

    @property
    def name(self) -> str:
        return f"hopland-{self.seed}"

    @property
    def lacks(self) -> dict[Need, str]:
        """Nothing."""
        return {}

    def mixed(self, n: int) -> list[KnownQuestion]:
        """Half of the questions have one hop, half two."""
        return [*self.questions(1, ceil(n / 2)), *self.questions(2, n // 2)]

    def questions(self, hops: int, n: int) -> list[KnownQuestion]:
        """`n` different chain questions of so many hops.

        No entity stands twice in a chain, and each of its facts has a passage of its own, so
        that the answer needs every gold passage.

        Raises:
            UsageError: the world holds fewer.
        """
        rng = Random(f"chains {self.seed} {hops}")
        sampler = Sampler(self.world, rng, Forge(rng, "test", world.RESERVED))
        found: dict[tuple[Fact, ...], KnownQuestion] = {}
        misses = 0
        while len(found) < n:
            facts = tuple(sampler.walk(hops))
            if facts not in found and self._strict(facts, hops):
                found[facts] = self._item(rng, facts, f"chain-{hops}-{len(found)}")
                misses = 0
            elif (misses := misses + 1) == TRIES:
                raise UsageError(
                    f"the world of seed {self.seed} holds {counted(len(found), 'question')} of "
                    f"{counted(hops, 'hop')}, and {n:,} are asked for: give a smaller --limit"
                )
        return list(found.values())

    def _strict(self, facts: Sequence[Fact], hops: int) -> bool:
        names = {name for fact in facts for name in (fact.subject, fact.object)}
        places = {self.world.telling_of[fact] for fact in facts}
        return len(facts) == len(places) == hops and len(names) == hops + 1

    def _item(self, rng: Random, facts: tuple[Fact, ...], identity: str) -> KnownQuestion:
        asked = chain(rng, facts)
        gold = tuple(self.world.tellings[self.world.telling_of[f]].passage for f in facts)
        question = Question(text=asked.text, answers=(asked.answer,), id=identity)
        return KnownQuestion(question, gold, facts)


def generated(seed: int) -> GeneratedWorld:
    """The world of a seed."""
    made = world.make(seed, split="test", scale=SCALE, phrasing="mixed", density="sparse")
    passages = [telling.passage for telling in made.tellings]
    index = bm25.from_passages(passages, name=f"hopland-{seed}")
    return GeneratedWorld(seed, made, index, passages)


def make(
    reader: Reader,
    *,
    other: Reader | None = None,
    seed: int = 0,
    limit: int = 100,
    presets: Presets = NO_PRESETS,
    entailment: str | None = None,
    compared: Sequence[str] = (),
) -> SuiteInputs:
    """The inputs of a seed; by default the entailment is `lexical`, which is exact for the names
    and years of the world."""
    return of_source(
        generated(seed),
        reader,
        other=other,
        seed=seed,
        limit=limit,
        presets=presets,
        entailment=entailment or "lexical",
        compared=compared,
    )
