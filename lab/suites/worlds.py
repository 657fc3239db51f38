"""The inputs of a suite: readers, and a world of known facts, generated from a seed.

Invariants: the same seed gives the same world, questions and passages; the first n questions are
the same for every limit; the world's names are test names, which no reader was trained on, and its
questions end in facts of one passage each, so no reader knows them closed book.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from hopscope.api.presets import Presets
from hopscope.lab.hopland import world
from hopscope.lab.hopland.contexts import Sampler
from hopscope.lab.hopland.names import Forge
from hopscope.lab.hopland.questions import chain
from hopscope.lab.hopland.world import Fact, World
from hopscope.runtime import components
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Entailment, Reader, Retriever
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.texts.answers import contains
from hopscope.runtime.types import Passage, Question
from hopscope.tracing.entailments import lexical
from hopscope.tracing.meters.seper import SePer
from hopscope.tracing.wrappers.cached import CachedEntailment, CachedReader

SCALE = 64
"""Scale of the world: 1,152 entities in some 1,300 passages."""
TRIES = 500
"""After this many draws without a new question the world has no more."""
METERS = ("seper",)
"""The meters whose options a preset can set."""
NO_PRESETS = Presets()
REMEMBERED = 4_000
"""Answers of a reader that suites may share."""


@dataclass(frozen=True)
class ChainItem:
    """A chain question with its facts and gold passages."""

    question: Question
    facts: tuple[Fact, ...]
    """In reasoning order; the object of the last is the answer."""
    gold: tuple[Passage, ...]
    """One passage for each fact, in the same order, all different."""

    @property
    def hops(self) -> int:
        return len(self.facts)

    @property
    def answer(self) -> str:
        return self.facts[-1].object

    def holds(self, passages: Sequence[Passage]) -> float:
        """The share of the gold passages among these: k/n."""
        shown = {passage.key for passage in passages}
        return sum(passage.key in shown for passage in self.gold) / len(self.gold)


@dataclass(frozen=True)
class SuiteInputs:
    """The readers, world and retriever of a suite."""

    reader: Reader
    """Caches its answers, so that suites share them."""
    other: Reader | None
    """A second reader of less ability, if there is one."""
    entailment: Entailment
    """Decides which answers mean the same; exact for the names and years of this world."""
    seed: int
    """The seed of the world, of draws from it, and of sampling."""
    limit: int
    """Questions of a suite, at most."""
    world: World
    retriever: Retriever
    """BM25 over all passages of the world."""
    presets: Presets = NO_PRESETS
    """Options of the meters."""

    def seper(self, *, reader: Reader | None = None, **own: int) -> SePer:
        """SePer by the presets, with this reader or the suite's own.

        Args:
            own: its options that the suite decides.
        """
        texts = self.presets.of_meters(["seper"])
        options = components.parse_options(
            SePer, {key.partition(".")[2]: text for key, text in texts.items()}
        )
        return SePer(
            reader or self.reader, self.entailment, **{"seed": self.seed, **options, **own}
        )

    @property
    def passages(self) -> list[Passage]:
        """All of the world, in the index's order."""
        return [telling.passage for telling in self.world.tellings]

    def chains(self, hops: int, n: int | None = None) -> list[ChainItem]:
        """`n` different chain questions of so many hops, `limit` by default.

        No entity stands twice in a chain, and each of its facts has a passage of its own, so
        that the answer needs every gold passage.

        Raises:
            UsageError: the world holds fewer.
        """
        wanted = self.limit if n is None else n
        rng = Random(f"chains {self.seed} {hops}")
        sampler = Sampler(self.world, rng, Forge(rng, "test", world.RESERVED))
        found: dict[tuple[Fact, ...], ChainItem] = {}
        misses = 0
        while len(found) < wanted:
            facts = tuple(sampler.walk(hops))
            if facts not in found and self._strict(facts, hops):
                found[facts] = self._item(rng, facts, f"chain-{hops}-{len(found)}")
                misses = 0
            elif (misses := misses + 1) == TRIES:
                raise UsageError(
                    f"the world of seed {self.seed} holds {len(found)} questions of {hops} hops, "
                    f"and {wanted} are asked for: give a smaller --limit"
                )
        return list(found.values())

    def distractors(self, item: ChainItem, n: int) -> tuple[Passage, ...]:
        """The first `n` distractors by the search: passages that are neither gold nor contain the
        answer."""
        found: list[Passage] = []
        depth = n + len(item.gold)
        while len(found) < n and depth < 2 * len(self.world.tellings):
            depth *= 2
            [hits] = self.retriever.search([item.question.text], k=depth)
            found = [hit.passage for hit in hits if useless(item, hit.passage)]
        return tuple(found[:n])

    def unrelated(self, item: ChainItem, n: int) -> tuple[Passage, ...]:
        """`n` different random passages that are neither gold nor contain the answer."""
        rng = Random(f"random {self.seed} {item.question.id}")
        drawn = rng.sample(self.passages, len(self.world.tellings))
        return tuple([passage for passage in drawn if useless(item, passage)][:n])

    def single_passages(self, item: ChainItem) -> list[tuple[Passage, ...]]:
        """Contexts for a one-hop question: none, the gold passage, the first distractor, and one
        drawn at random."""
        return [(), item.gold, self.distractors(item, 1), self.unrelated(item, 1)]

    def shuffled(self, item: ChainItem, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        """The passages in an order drawn for this question."""
        rng = Random(f"order {self.seed} {item.question.id}")
        return tuple(rng.sample(list(passages), len(passages)))

    def _strict(self, facts: Sequence[Fact], hops: int) -> bool:
        names = {name for fact in facts for name in (fact.subject, fact.object)}
        places = {self.world.telling_of[fact] for fact in facts}
        return len(facts) == len(places) == hops and len(names) == hops + 1

    def _item(self, rng: Random, facts: tuple[Fact, ...], identity: str) -> ChainItem:
        asked = chain(rng, facts)
        gold = tuple(self.world.tellings[self.world.telling_of[f]].passage for f in facts)
        question = Question(text=asked.text, answers=(asked.answer,), id=identity)
        return ChainItem(question, facts, gold)


def useless(item: ChainItem, passage: Passage) -> bool:
    """Whether a passage is not gold and does not name the answer."""
    gold = {one.key for one in item.gold}
    return passage.key not in gold and not contains(_whole(passage), item.answer)


def _whole(passage: Passage) -> str:
    return f"{passage.title} {passage.text}"


def make(
    reader: Reader,
    *,
    other: Reader | None = None,
    seed: int = 0,
    limit: int = 100,
    presets: Presets = NO_PRESETS,
) -> SuiteInputs:
    """The inputs of a seed."""
    made = world.make(seed, split="test", scale=SCALE, phrasing="mixed", density="sparse")
    passages = [telling.passage for telling in made.tellings]
    return SuiteInputs(
        reader=CachedReader(reader, size=REMEMBERED),
        other=None if other is None else CachedReader(other, size=REMEMBERED),
        entailment=CachedEntailment(lexical.build()),
        seed=seed,
        limit=limit,
        world=made,
        retriever=bm25.from_passages(passages, name=f"hopland-{seed}"),
        presets=presets,
    )
